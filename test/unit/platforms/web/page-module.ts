/**
 * Loads one of the page's own modules, which are plain JavaScript. Only those without a document work here.
 * `Module` says what the test uses of it.
 */
export async function loadPageModule<Module>(name: string): Promise<Module> {
  const url = new URL(`../../../../src/platforms/web/page/${name}.js`, import.meta.url);
  return (await import(url.href)) as Module;
}
