// The TypeScript SDK plays the steps: node play_typescript.mjs v1|v2 STEPS COMMAND...
import { readFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [era, told, command, ...args] = process.argv.slice(2);
const name = era === "v1" ? "@modelcontextprotocol/sdk" : "@modelcontextprotocol/client";
const root = path.join(process.env.NODE_PATH, name);
const load = async (file) => import(pathToFileURL(path.join(root, file)));
const { Client } = await load(era === "v1" ? "dist/esm/client/index.js" : "dist/index.mjs");
const { StdioClientTransport } = await load(
  era === "v1" ? "dist/esm/client/stdio.js" : "dist/stdio.mjs",
);

const options = era === "v1" ? {} : { versionNegotiation: { mode: "auto" } };
const client = new Client({ name: "steps", version: "1" }, options);
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
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
