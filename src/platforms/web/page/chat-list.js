import { useCallback, useRef, useState } from "preact/hooks";
import { deleteConversation, labelConversation, loadConversations } from "./api.js";

/** @typedef {import("./api.js").Conversation} Conversation */

const firstListed = 200;
const maxListed = 2000;

/**
 * Holds the list of conversations, and what people change in it. `problem` says why it is not up to date. It
 * is loaded again when the connection is back.
 * @param {(id: string) => void} onRemoved
 */
export function useChatList(onRemoved) {
  const [listed, setListed] = useState({
    conversations: /** @type {readonly Conversation[]} */ ([]),
    mayHaveMore: false,
  });
  const [problem, setProblem] = useState("");
  const max = useRef(firstListed);
  const [running, setRunning] = useState(/** @type {readonly string[]} */ ([]));
  const [trouble, setTrouble] = useState("");
  /** The loading in progress, and the next one, which begins when that has ended. */
  const loading = useRef(/** @type {Promise<void> | undefined} */ (undefined));
  const following = useRef(/** @type {Promise<void> | undefined} */ (undefined));

  const load = useCallback(async () => {
    try {
      setListed(await loadConversations(max.current));
      setProblem("");
    } catch (error) {
      setProblem(/** @type {Error} */ (error).message);
    } finally {
      loading.current = undefined;
    }
  }, []);

  /** Resolves when a list loaded after this call is shown. Many calls at once make two requests. */
  const refresh = useCallback(() => {
    if (loading.current === undefined) return (loading.current = load());
    following.current ??= loading.current.then(() => {
      following.current = undefined;
      return (loading.current = load());
    });
    return following.current;
  }, [load]);

  /** Takes in what the server says about the list. */
  const follow = useCallback(
    (/** @type {import("../views.ts").ListStateView} */ state) => {
      setRunning(state.running);
      setTrouble(state.trouble ?? "");
      if (state.isChanged) void refresh();
    },
    [refresh],
  );

  return {
    ...listed,
    problem,
    running,
    trouble,
    follow,
    refresh: useCallback(() => void refresh(), [refresh]),
    showMore: () => {
      max.current = Math.min(max.current * 2, maxListed);
      void refresh();
    },
    /** @type {(id: string, labels: { name?: string, isPinned?: boolean }) => Promise<void>} */
    label: async (id, labels) => {
      await labelConversation(id, labels);
      await refresh();
    },
    /** @type {(id: string) => Promise<void>} */
    remove: async (id) => {
      await deleteConversation(id);
      onRemoved(id);
      await refresh();
    },
  };
}
