import { checkThread, json, memberChannel, need, type Method } from "./methods.ts";
import { SlackApiError, toFileJson, type Fields, toText } from "./workspace.ts";

const mediaTypes: Readonly<Record<string, string>> = {
  gif: "image/gif",
  jpg: "image/jpeg",
  md: "text/markdown",
  png: "image/png",
  webp: "image/webp",
};

/** `alt_txt` is the API's name; `alt_text`, which the official client sends, is ignored like any unknown field. */
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
    const channel = memberChannel(context, toText(args["channel_id"]));
    const threadTs = checkThread(context, channel, args["thread_ts"]);
    for (const file of files) file.isShared = true;
    const share = () =>
      workspace.addMessage({
        channel: channel.id,
        user: workspace.botUserId,
        threadTs,
        text: toText(args["initial_comment"]),
        files,
      });
    // Slack shares files asynchronously, after the response.
    setTimeout(share, 5).unref();
  }
  return { files: files.map((file) => toFileJson(workspace, file, origin())) };
};

const info: Method = (args, { workspace, origin }) => {
  const file = workspace.files.get(need(args, "file"));
  if (file === undefined) throw new SlackApiError("file_not_found");
  if (file.isDeleted) throw new SlackApiError("file_deleted");
  return { file: { ...toFileJson(workspace, file, origin()), file_access: "visible" } };
};

/** `files.*` methods with the scope that each needs. */
export const fileMethods: Readonly<Record<string, { readonly scope: string; readonly run: Method }>> = {
  "files.getUploadURLExternal": { scope: "files:write", run: getUploadUrl },
  "files.completeUploadExternal": { scope: "files:write", run: completeUpload },
  "files.info": { scope: "files:read", run: info },
};
