/** The package `@highlightjs/cdn-assets`, which has no types of its own, under its name in the import map. */
declare module "highlight" {
  const highlighter: {
    /** Whether a language, or an alias of one, is known. */
    getLanguage(name: string): object | undefined;
    /** `value`: markup of `span` elements with classes that begin with `hljs-`. */
    highlight(
      code: string,
      options: { readonly language: string; readonly ignoreIllegals: boolean },
    ): { readonly value: string };
  };
  export default highlighter;
}

/** The package `@mermaid-js/tiny`, which is a script and has no types of its own. */
declare const mermaid: {
  initialize(options: Readonly<Record<string, unknown>>): void;
  render(id: string, text: string): Promise<{ readonly svg: string }>;
};

/** Of the server, whose types the page uses. It runs nothing of it. */
declare module "node:async_hooks" {
  export class AsyncLocalStorage<T> {
    run<R>(store: T, work: () => R): R;
    getStore(): T | undefined;
  }
}
