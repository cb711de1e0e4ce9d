// The official conformance suite, with timers that run four times slower: it gives up on some
// answers after half a second, which a machine that runs other tests at the same time can exceed.

const SLOWER = 4;
const set = globalThis.setTimeout;
globalThis.setTimeout = (call, delay, ...given) => set(call, SLOWER * delay, ...given);

await import("./node_modules/@modelcontextprotocol/conformance/dist/index.js");
