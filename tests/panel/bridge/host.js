// An app host as small as can be: the official bridge around a sandboxed frame. What the
// panel asks for goes to `window.server(method, params)`; what it tells is kept in `window.told`.
import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";

window.told = { modelContexts: [], sizes: [], initialized: 0 };

window.showApp = async (html, result, hostContext) => {
  const capabilities = { serverTools: {}, serverResources: {}, updateModelContext: { text: {} } };
  const bridge = new AppBridge(null, { name: "host", version: "1" }, capabilities, { hostContext });
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", "allow-scripts");
  document.body.append(frame);
  const ready = new Promise((resolve) => {
    bridge.oninitialized = () => {
      window.told.initialized += 1;
      resolve();
    };
  });
  bridge.oncalltool = (params) => window.server("tools/call", params);
  bridge.onreadresource = (params) => window.server("resources/read", params);
  bridge.onupdatemodelcontext = async (params) => {
    window.told.modelContexts.push(params);
    return {};
  };
  bridge.onsizechange = ({ width, height }) => {
    window.told.sizes.push({ width, height });
    if (height) frame.style.height = `${height}px`;
  };
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  frame.srcdoc = html;
  await ready;
  await bridge.sendToolInput({ arguments: {} });
  if (result) await bridge.sendToolResult(result);
  window.bridge = bridge;
};
