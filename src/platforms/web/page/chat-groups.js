/** @typedef {import("./api.js").Conversation} Conversation */
/** @typedef {{ key: string, title: string, conversations: Conversation[] }} Group */

const dayMs = 24 * 60 * 60 * 1000;

/**
 * Returns the list under headings: pinned, today, yesterday, the seven days before, then months. Days and
 * months are those of the browser's time zone. Groups without conversations are left out.
 * @param {readonly Conversation[]} conversations the newest first
 * @param {number} now Unix milliseconds
 * @param {{ language: string, titles: { pinned: string, today: string, yesterday: string, week: string } }}
 *   words
 * @returns {Group[]}
 */
export function toGroups(conversations, now, { language, titles }) {
  const today = new Date(now);
  /** @param {number} days */
  const daysAgo = (days) => new Date(today.getFullYear(), today.getMonth(), today.getDate() - days).getTime();
  const month = new Intl.DateTimeFormat(language, { month: "long" });
  const monthOfYear = new Intl.DateTimeFormat(language, { month: "long", year: "numeric" });

  /** @param {Conversation} one @returns {Omit<Group, "conversations">} */
  const groupOf = ({ isPinned, updatedAt }) => {
    if (isPinned === true) return { key: "pinned", title: titles.pinned };
    if (updatedAt >= daysAgo(0)) return { key: "today", title: titles.today };
    if (updatedAt >= daysAgo(1)) return { key: "yesterday", title: titles.yesterday };
    if (updatedAt >= daysAgo(7)) return { key: "week", title: titles.week };
    const at = new Date(updatedAt);
    const key = `${at.getFullYear()}-${at.getMonth()}`;
    const format = at.getFullYear() === today.getFullYear() ? month : monthOfYear;
    return { key, title: format.format(at) };
  };

  /** @type {Map<string, Group>} */
  const groups = new Map();
  const pinnedFirst = [
    ...conversations.filter(({ isPinned }) => isPinned === true),
    ...conversations.filter(({ isPinned }) => isPinned !== true),
  ];
  for (const one of pinnedFirst) {
    const { key, title } = groupOf(one);
    const group = groups.get(key) ?? { key, title, conversations: [] };
    group.conversations.push(one);
    groups.set(key, group);
  }
  return [...groups.values()];
}

/** Returns the milliseconds until the groups change by themselves, at midnight. @param {number} now */
export function untilMidnight(now) {
  const today = new Date(now);
  const midnight = new Date(today.getFullYear(), today.getMonth(), today.getDate() + 1).getTime();
  return Math.min(dayMs, Math.max(1000, midnight - now));
}
