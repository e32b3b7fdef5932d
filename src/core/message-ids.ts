/** Ids of a turn's messages, made from the event's key so that a message is not stored twice. */
export const messageIds = {
  user: (key: string): string => `${key}/user`,
  /** What was read in a room has an id of its own, so that an edit can make a question of it later. */
  room: (key: string): string => `${key}/said`,
  /** The answer has the same id in every attempt, so that a turn has only one. */
  answer: (key: string): string => `${key}/answer`,
};
