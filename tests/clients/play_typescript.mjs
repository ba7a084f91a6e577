// The TypeScript SDK plays the steps: node play_typescript.mjs v1|v2 STEPS WAY
import { readFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [era, told, where] = process.argv.slice(2);
const way = JSON.parse(where);
const name = era === "v1" ? "@modelcontextprotocol/sdk" : "@modelcontextprotocol/client";
const root = path.join(process.env.NODE_PATH, name);
const load = async (file) => import(pathToFileURL(path.join(root, file)));
const part = (v1, v2) => load(era === "v1" ? `dist/esm/client/${v1}.js` : `dist/${v2}.mjs`);
const { Client } = await part("index", "index");

async function transport() {
  if (way.command) {
    const [command, ...args] = way.command;
    const { StdioClientTransport } = await part("stdio", "stdio");
    return new StdioClientTransport({ command, args, env: process.env });
  }
  const requestInit = { headers: way.headers };
  if (way.http) {
    const { StreamableHTTPClientTransport } = await part("streamableHttp", "index");
    return new StreamableHTTPClientTransport(new URL(way.http), { requestInit });
  }
  const { SSEClientTransport } = await part("sse", "index");
  return new SSEClientTransport(new URL(way.sse), { requestInit });
}

const options = era === "v1" ? {} : { versionNegotiation: { mode: "auto" } };
const client = new Client({ name: "steps", version: "1" }, options);
await client.connect(await transport());
await client.listTools();
const answers = [];
for (const [tool, given] of JSON.parse(told)) {
  const session_id = answers.length ? answers[0].session_id : "";
  const result = await client.callTool({ name: tool, arguments: { session_id, ...given } });
  answers.push(result.structuredContent);
}
await client.close();
const { version } = JSON.parse(readFileSync(path.join(root, "package.json")));
console.log(JSON.stringify({ client: `${name} ${version}`, answers }));
