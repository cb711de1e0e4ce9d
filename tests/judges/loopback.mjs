// A native client's half of an authorization (RFC 8252): it listens on loopback, says on standard
// output which address a person has to open, and waits until the browser comes back.

import { createServer } from "node:http";
import { once } from "node:events";

export class Loopback {
  #server = createServer((request, response) => {
    response.end("You may close this window.\n");
    const address = new URL(request.url, this.redirectUri);
    if (address.pathname === "/callback") this.#arrived(address);
  });
  #arrived = () => {};

  static async start() {
    const loopback = new Loopback();
    loopback.#server.listen(0, "127.0.0.1");
    await once(loopback.#server, "listening");
    return loopback;
  }

  get redirectUri() {
    return `http://127.0.0.1:${this.#server.address().port}/callback`;
  }

  // Returns the address at which the browser arrived, with the authorization response in its query.
  async open(address) {
    const arrival = new Promise((resolve) => (this.#arrived = resolve));
    process.stdout.write(`OPEN ${address}\n`);
    return arrival;
  }

  stop() {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
