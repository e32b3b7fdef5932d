/** Where Slack sends events, commands and interactions in HTTP mode. */
export const eventsPath = "/slack/events";

/** Where Slack sends that person's browser back. */
export const redirectPath = "/slack/oauth_redirect";

/** Where a person begins to install the app in a workspace. */
export const installPath = "/slack/install";
