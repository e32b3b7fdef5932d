/** A document that holds no words. Nothing else of it exists. */
const wordless = {
  documentElement: { lang: "en" },
  querySelector: () => ({ textContent: JSON.stringify({ language: "en", messages: {} }) }),
};

/**
 * Imports a module of the page, which is plain JavaScript. What needs a DOM while it is imported does not
 * work here. `Module` has the exports that the test uses.
 */
export async function loadPageModule<Module>(name: string): Promise<Module> {
  const url = new URL(`../../../../src/platforms/web/page/${name}.js`, import.meta.url);
  Object.assign(globalThis, { document: wordless });
  try {
    return (await import(url.href)) as Module;
  } finally {
    Reflect.deleteProperty(globalThis, "document");
  }
}
