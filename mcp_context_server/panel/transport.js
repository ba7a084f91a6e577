// How the panel reaches the server: by the bridge of an app host that shows it in a frame,
// or, opened as a page, by speaking MCP to the server that it came from.

const VERSION = "2026-07-28";
const CLIENT = { name: "mcp-context-server-panel", version: "1" };

/** An answer that says no; `status` is the one of HTTP, where there is one. */
class Refused extends Error {
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }
}

/** MCP by `fetch`, one request at a time and no session: revision 2026-07-28. */
class PageTransport {
  isApp = false;
  #endpoint = new URL("mcp", location.href);
  #id = 0;

  async open() {}

  /** Whether a token was given. */
  get hasToken() {
    return sessionStorage.getItem("token") !== null;
  }

  /** Keep a bearer token for as long as this tab is open. */
  unlock(token) {
    sessionStorage.setItem("token", token);
  }

  async request(method, params = {}) {
    const id = (this.#id += 1),
      token = sessionStorage.getItem("token");
    const headers = {
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
      "MCP-Protocol-Version": VERSION,
      "Mcp-Method": method,
    };
    const name = params.name ?? params.uri;
    if (name) headers["Mcp-Name"] = name;
    if (token) headers.Authorization = `Bearer ${token}`;
    const meta = {
      "io.modelcontextprotocol/protocolVersion": VERSION,
      "io.modelcontextprotocol/clientCapabilities": {},
      "io.modelcontextprotocol/clientInfo": CLIENT,
    };
    const body = JSON.stringify({ jsonrpc: "2.0", id, method, params: { ...params, _meta: meta } });
    const response = await fetch(this.#endpoint, { method: "POST", headers, body });
    if (response.status === 401) throw new Refused("The server wants a token.", 401);
    return answerIn(await response.text(), response, id);
  }
}

/** The answer to a request in the body of a response, which is JSON or a stream of events. */
function answerIn(text, response, id) {
  const isStream = (response.headers.get("Content-Type") ?? "").startsWith("text/event-stream");
  const texts = isStream
    ? text
        .split(/\r?\n\r?\n/)
        .map(dataOf)
        .filter(Boolean)
    : [text];
  for (const each of texts) {
    let message;
    try {
      message = JSON.parse(each);
    } catch {
      continue;
    }
    if (message?.id !== id && !message?.error) continue;
    if (message.error)
      throw new Refused(message.error.message ?? "The server refused.", response.status);
    if (message.result) return message.result;
  }
  throw new Refused(`The server's answer (${response.status}) is not one of MCP.`, response.status);
}

const dataOf = (event) =>
  event
    .split(/\r?\n/)
    .filter((line) => line.startsWith("data:"))
    .map((line) => line.slice(5))
    .join("\n");

/** JSON-RPC with the app host around the frame. */
class AppTransport {
  isApp = true;
  host = {};
  #id = 0;
  #waiting = new Map();
  #on;

  /** `on` has what to do at the host's notifications, by method. */
  constructor(on) {
    this.#on = on;
  }

  async open() {
    addEventListener("message", (event) => event.source === parent && this.#take(event.data));
    const answer = await this.request("ui/initialize", {
      protocolVersion: "2026-01-26",
      appInfo: CLIENT,
      appCapabilities: { availableDisplayModes: ["inline", "fullscreen"] },
    });
    this.host = answer.hostCapabilities ?? {};
    this.#on["ui/notifications/host-context-changed"]?.(answer.hostContext ?? {});
    this.notify("ui/notifications/initialized");
    new ResizeObserver(() => {
      const { width, height } = document.documentElement.getBoundingClientRect();
      this.notify("ui/notifications/size-changed", {
        width: Math.ceil(width),
        height: Math.ceil(height),
      });
    }).observe(document.documentElement);
  }

  request(method, params = {}) {
    const id = (this.#id += 1);
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#post({ id, method, params });
    });
  }

  notify(method, params = {}) {
    this.#post({ method, params });
  }

  /** Tell the model what a person did here, where the host passes that on. */
  tellModel(text) {
    if (!this.host.updateModelContext) return;
    this.request("ui/update-model-context", { content: [{ type: "text", text }] }).catch(() => {});
  }

  #post(message) {
    parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
  }

  #take(message) {
    if (message?.jsonrpc !== "2.0") return;
    if (message.method === undefined) {
      const waiting = this.#waiting.get(message.id);
      this.#waiting.delete(message.id);
      if (message.error) waiting?.reject(new Refused(message.error.message ?? "The host refused."));
      else waiting?.resolve(message.result);
    } else if (message.id === undefined) {
      this.#on[message.method]?.(message.params ?? {});
    } else if (message.method === "ping" || message.method === "ui/resource-teardown") {
      if (message.method !== "ping") this.#on[message.method]?.();
      this.#post({ id: message.id, result: {} });
    } else {
      this.#post({
        id: message.id,
        error: { code: -32601, message: `Unknown method: ${message.method}` },
      });
    }
  }
}

/** What a tool answers, as data. Throws what it says where it fails. */
async function callTool(transport, name, args) {
  const answer = await transport.request("tools/call", { name, arguments: args });
  if (answer.isError || !answer.structuredContent) {
    throw new Refused(
      (answer.content ?? []).map((block) => block.text ?? "").join(" ") ||
        `${name} gave no answer.`,
    );
  }
  return answer.structuredContent;
}

/** The text of a resource. */
async function readResource(transport, uri) {
  const answer = await transport.request("resources/read", { uri });
  return answer.contents?.[0]?.text ?? "";
}
