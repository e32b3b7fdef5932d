import type { ServerResponse } from "node:http";
import { currentLanguage } from "../../words/translate.ts";

/** A page of the installation: plain text, and a link. */
export interface InstallPage {
  readonly title: string;
  readonly text: string;
  readonly link?: { readonly href: string; readonly label: string };
}

/** What keeps the page from being framed, cached, or from telling other sites its address, which has a code in it. */
const headers: Readonly<Record<string, string>> = {
  "Content-Type": "text/html; charset=utf-8",
  "Cache-Control": "no-store",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
  "Content-Security-Policy":
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
};

/** Sets the headers of every page, also where Slack's SDK sends it. */
export function setPageHeaders(response: ServerResponse): void {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
}

/** Sends a page. */
export function sendPage(response: ServerResponse, status: number, page: InstallPage): void {
  setPageHeaders(response);
  response.writeHead(status);
  response.end(toHtml(page));
}

/** The page as HTML. */
export function toHtml({ title, text, link }: InstallPage): string {
  const button = link === undefined ? "" : `<p><a href="${escape(link.href)}">${escape(link.label)}</a></p>`;
  return `<!doctype html><html lang="${currentLanguage()}"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escape(title)}</title>
<style>body{font:1rem/1.5 system-ui,sans-serif;max-width:32rem;margin:4rem auto;padding:0 1rem}
a{display:inline-block;padding:.6rem 1rem;border-radius:.4rem;background:#2b3a67;color:#fff;text-decoration:none}</style>
<h1>${escape(title)}</h1><p>${escape(text)}</p>${button}</html>
`;
}

function escape(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}
