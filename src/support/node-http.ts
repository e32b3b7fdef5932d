const http = process.getBuiltinModule("node:http");

/**
 * Creates an HTTP server of Node.js. Not imported from `node:http`: to name the exports of that module for an import,
 * Node.js loads its own `fetch` with an undici, which takes 17 ms and 14 MB at a start.
 */
export const createHttpServer = http.createServer;
