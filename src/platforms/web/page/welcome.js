import { html } from "./dom.js";

/**
 * Things to try. Those of missing commands are left out.
 * @param {readonly import("../views.ts").CommandView[]} commands
 */
function ideas(commands) {
  /** @param {string} name */
  const has = (name) => commands.some((command) => command.name === name);
  return [
    has("imagine") && {
      title: "Draw something",
      detail: "/imagine a sailing boat at dusk",
      text: "/imagine a sailing boat at dusk",
    },
    {
      title: "Describe a picture",
      detail: "Choose a picture, or paste or drop one",
      text: "What is in this picture?",
      picker: "image/*",
    },
    has("transcribe") && {
      title: "Transcribe a recording",
      detail: "Choose an audio file, or record a note",
      text: "/transcribe ",
      picker: "audio/*",
    },
    has("models") && { title: "See the models", detail: "/models", text: "/models" },
  ].filter((idea) => idea !== false);
}

/**
 * Shown in an empty conversation.
 * @param {object} props
 * @param {readonly import("../views.ts").CommandView[]} props.commands
 * @param {(idea: { text: string, picker?: string }) => void} props.onIdea
 */
export function Welcome({ commands, onIdea }) {
  return html`<section class="welcome" aria-labelledby="welcome-title">
    <img src="/page/icon.svg" alt="" width="52" height="52" />
    <h2 id="welcome-title">What shall we talk about?</h2>
    <p>Write below, attach pictures and recordings, or begin with one of these.</p>
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

/** Shown while the gateway is the sandbox. @param {{ banner: import("../views.ts").StateView["banner"] }} props */
export function Banner({ banner }) {
  if (!banner.isSandbox) return null;
  return html`<aside class="banner" aria-label="Sandbox">
    <p>
      <strong>Sandbox: no model is connected.</strong>
      ${" To connect one, set "}
      <code>GATEWAY_BASE_URL</code>${" and "}<code>GATEWAY_API_KEY</code>${" in "}<code>.env</code>
      ${" and restart."}
    </p>
  </aside>`;
}
