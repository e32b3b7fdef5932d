import { html } from "./dom.js";
import { translate } from "./words.js";

/**
 * Returns things to try, without those of missing commands.
 * @param {readonly import("../views.ts").CommandView[]} commands
 */
function ideas(commands) {
  /** @param {string} name */
  const has = (name) => commands.some((command) => command.name === name);
  return [
    has("imagine") && {
      title: translate("page.idea.draw"),
      detail: translate("page.idea.draw.text"),
      text: translate("page.idea.draw.text"),
    },
    {
      title: translate("page.idea.describe"),
      detail: translate("page.idea.describe.detail"),
      text: translate("page.idea.describe.text"),
      picker: "image/*",
    },
    has("transcribe") && {
      title: translate("page.idea.transcribe"),
      detail: translate("page.idea.transcribe.detail"),
      text: "/transcribe ",
      picker: "audio/*",
    },
    has("models") && { title: translate("page.idea.models"), detail: "/models", text: "/models" },
  ].filter((idea) => idea !== false);
}

/**
 * Shows the welcome in an empty conversation.
 * @param {object} props
 * @param {"page.unknown-chat" | "page.only-private" | undefined} props.why why the address shows no messages
 * @param {readonly import("../views.ts").CommandView[]} props.commands
 * @param {(idea: { text: string, picker?: string }) => void} props.onIdea
 */
export function Welcome({ why, commands, onIdea }) {
  return html`<section class="welcome" aria-labelledby="welcome-title">
    <img src="/page/icon.svg" alt="" width="52" height="52" />
    ${why !== undefined && html`<p class="unknown" role="status">${translate(why)}</p>`}
    <h2 id="welcome-title">${translate("page.welcome")}</h2>
    <p>${translate("page.welcome.how")}</p>
    <ul class="ideas">
      ${ideas(commands).map(
        (idea) =>
          html`<li key=${idea.title}>
            <button type="button" class="idea" onClick=${() => onIdea(idea)}>
              <strong>${idea.title}</strong><span>${idea.detail}</span>
            </button>
          </li>`,
      )}
    </ul>
  </section>`;
}

/** Says that this is the sandbox. @param {{ banner: import("../views.ts").StateView["banner"] }} props */
export function Banner({ banner }) {
  if (!banner.isSandbox) return null;
  return html`<aside class="banner" aria-label="Sandbox">
    <p>
      <strong>${translate("page.sandbox")}</strong>
      ${" "}${translate("page.sandbox.how")
        .split(/(GATEWAY_BASE_URL|GATEWAY_API_KEY|\.env)/)
        .map((part, index) => (index % 2 === 0 ? part : html`<code>${part}</code>`))}
    </p>
  </aside>`;
}
