import { logIn } from "./api.js";

const form = /** @type {HTMLFormElement} */ (document.querySelector("#login"));
const field = /** @type {HTMLInputElement} */ (document.querySelector("#password"));
const problem = /** @type {HTMLElement} */ (document.querySelector("#problem"));

form.addEventListener("submit", (event) => {
  event.preventDefault();
  logIn(field.value).then(
    (message) => {
      if (message === undefined) {
        location.reload();
        return;
      }
      problem.textContent = message;
      field.select();
    },
    () => {
      problem.textContent = "Parley cannot be reached. Is it still running?";
    },
  );
});
