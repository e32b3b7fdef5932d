import { call } from "./api.js";

const form = /** @type {HTMLFormElement} */ (document.querySelector("#login"));
const field = /** @type {HTMLInputElement} */ (document.querySelector("#password"));
const name = /** @type {HTMLInputElement} */ (document.querySelector("#name"));
const problem = /** @type {HTMLElement} */ (document.querySelector("#problem"));

const button = /** @type {HTMLButtonElement} */ (document.querySelector("button"));

form.addEventListener("submit", (event) => {
  event.preventDefault();
  call("POST", "/api/login", { name: name.value, password: field.value }).then(
    () => location.reload(),
    (/** @type {Error} */ error) => {
      problem.textContent = error.message;
      field.select();
    },
  );
});

// Without this script the browser itself would send the form, and show the raw answer.
for (const each of [name, field, button]) each.disabled = false;
(name.offsetParent === null ? field : name).focus();
