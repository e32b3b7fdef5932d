/** A path, a method, and what serves them. */
export interface Route<T> {
  readonly method: "GET" | "POST" | "DELETE";
  /** A whole path, or a pattern of whole paths whose groups the handler gets. */
  readonly path: string | RegExp;
  readonly run: T;
}

/** What a router says to a request. */
type Found<T> =
  | { readonly kind: "route"; readonly run: T; readonly groups: readonly string[] }
  /** `allow` is the value of the header that a 405 must have. */
  | { readonly kind: "wrong-method"; readonly allow: string }
  | { readonly kind: "nothing" };

/** Creates a router, which finds the first route that fits. HEAD is served as GET. */
export function createRouter<T>(routes: readonly Route<T>[]) {
  return (method: string | undefined, path: string): Found<T> => {
    const matching = routes.flatMap((route) => {
      const groups = groupsOf(route.path, path);
      return groups === undefined ? [] : [{ route, groups }];
    });
    const found = matching.find(({ route }) => route.method === (method === "HEAD" ? "GET" : method));
    if (found !== undefined) return { kind: "route", run: found.route.run, groups: found.groups };
    if (matching.length === 0) return { kind: "nothing" };
    return { kind: "wrong-method", allow: matching.map(({ route }) => route.method).join(", ") };
  };
}

function groupsOf(wanted: string | RegExp, path: string): readonly string[] | undefined {
  if (typeof wanted === "string") return wanted === path ? [] : undefined;
  return wanted.exec(path)?.slice(1);
}

/** Whether a request only reads. */
export function isRead({ method }: { readonly method?: string | undefined }): boolean {
  return method === "GET" || method === "HEAD";
}
