/** What Slack shows of the bot as an agent: sessions, App Home, shortcuts, feedback. */
export const slackAgentMessages = {
  "slack.session-untitled": "Conversation",
  "slack.home.use": "How to use Parley",
  "slack.home.commands": "Commands",
  "slack.home.settings": "Your settings",
  "slack.home.usage": "Your usage",
  "slack.feedback.good": "Good answer",
  "slack.feedback.bad": "Bad answer",
  "slack.feedback.thanks": "Thank you. Your rating is stored with the answer.",
  "slack.shortcut.where": "The answer comes in your direct messages with Parley.",
  "slack.welcome":
    "Hello, I am Parley. I answer questions, look at pictures and files, draw, and write down voice notes. Mention me in a message, and I answer in its thread; there you can go on without mentioning me. I answer nothing else here. {command} says more.",
  "slack.models.search": "Type a part of a model's name",
  "slack.models.none": "None: the usual model",
} as const;
