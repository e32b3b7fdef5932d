import { messageEvents } from "./installation.ts";
import { checkThread, json, need, writableChannel, type Method } from "./methods.ts";
import {
  botSees,
  SlackApiError,
  toFileJson,
  toText,
  type Fields,
  type SlackChannel,
  type SlackFile,
  type Workspace,
} from "./workspace.ts";

const mediaTypes: Readonly<Record<string, string>> = {
  gif: "image/gif",
  jpg: "image/jpeg",
  md: "text/markdown",
  png: "image/png",
  webp: "image/webp",
};

/** The API's name is `alt_txt`. The official client sends `alt_text`, which Slack ignores. */
const getUploadUrl: Method = (args, { workspace, origin }) => {
  const name = need(args, "filename");
  const length = Number(need(args, "length"));
  if (!Number.isInteger(length) || length < 1) throw new SlackApiError("invalid_arguments");
  const file = workspace.addFile({
    name,
    owner: workspace.botUserId,
    expectedBytes: length,
    mediaType: mediaTypes[name.split(".").at(-1)?.toLowerCase() ?? ""] ?? "application/octet-stream",
    altText: args["alt_txt"] === undefined ? undefined : toText(args["alt_txt"]),
  });
  return { upload_url: `${origin()}/upload/v1/${file.id}/${file.uploadSecret}`, file_id: file.id };
};

const completeUpload: Method = (args, context) => {
  const { workspace, origin } = context;
  const wanted = json(args, "files");
  if (!Array.isArray(wanted) || wanted.length === 0) throw new SlackApiError("invalid_arguments");
  const files = (wanted as Fields[]).map(({ id, title }) => {
    const file = workspace.files.get(toText(id));
    if (file === undefined || file.owner !== workspace.botUserId) throw new SlackApiError("file_not_found");
    if (file.bytes === undefined) throw new SlackApiError("file_update_failed");
    if (file.isShared) throw new SlackApiError("file_already_completed");
    if (title !== undefined) file.title = toText(title);
    return file;
  });
  if (args["channel_id"] !== undefined) {
    const channel = writableChannel(context, toText(args["channel_id"]));
    const threadTs = checkThread(context, channel, args["thread_ts"]);
    for (const file of files) file.isShared = true;
    const share = () => {
      if (files.every(({ isDeleted }) => isDeleted)) return;
      const message = workspace.addMessage({
        channel: channel.id,
        user: workspace.botUserId,
        threadTs,
        text: toText(args["initial_comment"]),
        files,
      });
      if (!context.installation.subscribesTo(messageEvents[channel.kind])) return;
      // The app's own uploads are events too. Unlike its posts they have no `bot_id`.
      context.hub.sendEvent({
        type: "message",
        subtype: "file_share",
        user: workspace.botUserId,
        upload: false,
        text: message.text,
        ts: message.ts,
        files: files.map((file) => toFileJson(workspace, file, origin())),
        channel: channel.id,
        channel_type: channel.kind,
        event_ts: message.ts,
        ...(threadTs === undefined ? {} : { thread_ts: threadTs }),
      });
    };
    // Slack shares files asynchronously, after the response.
    if (context.lostShares.count > 0) context.lostShares.count -= 1;
    else if (context.shareDelay.ms < 50) setTimeout(share, context.shareDelay.ms).unref();
    else context.clock.after(context.shareDelay.ms, share);
  }
  return { files: files.map((file) => toFileJson(workspace, file, origin())) };
};

/** Returns where a file was shared. @see https://docs.slack.dev/reference/objects/file-object */
function sharesOf({ channels }: Workspace, file: SlackFile): Fields {
  const found = [...channels.values()].flatMap((channel) =>
    channel.messages
      .filter(({ files }) => files.includes(file))
      .map(({ ts, threadTs }) => ({ channel, share: { ts, ...(threadTs && { thread_ts: threadTs }) } })),
  );
  const idsOf = (kinds: readonly SlackChannel["kind"][]) => [
    ...new Set(found.filter(({ channel }) => kinds.includes(channel.kind)).map(({ channel }) => channel.id)),
  ];
  const sharesIn = (isPublic: boolean) =>
    Object.fromEntries(
      found
        .filter(({ channel }) => (channel.kind === "channel") === isPublic)
        .map(({ channel: { id }, share }) => [id, [share]]),
    );
  return {
    channels: idsOf(["channel"]),
    groups: idsOf(["group", "mpim"]),
    ims: idsOf(["im"]),
    shares: { public: sharesIn(true), private: sharesIn(false) },
  };
}

const info: Method = (args, { workspace, origin }) => {
  const file = workspace.files.get(need(args, "file"));
  if (file === undefined || !botSees(workspace, file)) throw new SlackApiError("file_not_found");
  if (file.isDeleted) throw new SlackApiError("file_deleted");
  return {
    file: { ...toFileJson(workspace, file, origin()), file_access: "visible", ...sharesOf(workspace, file) },
  };
};

/** Deletes a file of the app's own. @see https://docs.slack.dev/reference/methods/files.delete */
const remove: Method = (args, { workspace }) => {
  const file = workspace.files.get(need(args, "file"));
  if (file === undefined || file.owner !== workspace.botUserId) throw new SlackApiError("file_not_found");
  if (file.isDeleted) throw new SlackApiError("file_deleted");
  file.isDeleted = true;
  return {};
};

/** The `files.*` methods with the scope that each needs. */
export const fileMethods: Readonly<Record<string, { readonly scope: string; readonly run: Method }>> = {
  "files.getUploadURLExternal": { scope: "files:write", run: getUploadUrl },
  "files.completeUploadExternal": { scope: "files:write", run: completeUpload },
  "files.delete": { scope: "files:write", run: remove },
  "files.info": { scope: "files:read", run: info },
};
