/**
 * Imports a module of the page, which is plain JavaScript. Modules that need a DOM do not work here. `Module`
 * has the exports that the test uses.
 */
export async function loadPageModule<Module>(name: string): Promise<Module> {
  const url = new URL(`../../../../src/platforms/web/page/${name}.js`, import.meta.url);
  return (await import(url.href)) as Module;
}
