/** Declares the package `@highlightjs/cdn-assets`, which has no types, under its name in the import map. */
declare module "highlight" {
  const highlighter: {
    /** Returns `undefined` where neither a language nor an alias has this name. */
    getLanguage(name: string): object | undefined;
    /** `value` is markup of `span` elements with classes that begin with `hljs-`. */
    highlight(
      code: string,
      options: { readonly language: string; readonly ignoreIllegals: boolean },
    ): { readonly value: string };
  };
  export default highlighter;
}

/** Declares the package `@mermaid-js/tiny`, which is a script and has no types of its own. */
declare const mermaid: {
  initialize(options: Readonly<Record<string, unknown>>): void;
  render(id: string, text: string): Promise<{ readonly svg: string }>;
};

/** Declares a module of the server, whose types the page uses. The page runs nothing of it. */
declare module "node:async_hooks" {
  export class AsyncLocalStorage<T> {
    run<R>(store: T, work: () => R): R;
    getStore(): T | undefined;
  }
}
