/** A response with this body, in place of one that was read: a response cannot be read twice. */
export function toResponse(status: number, body: string, from = new Headers()): Response {
  // The body is not encoded any more.
  const headers = new Headers([...from].filter(([name]) => !/^content-(encoding|length)$/i.test(name)));
  if (!headers.has("content-type")) headers.set("content-type", "application/json");
  return new Response(body, { status, headers });
}
