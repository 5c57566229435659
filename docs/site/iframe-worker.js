// A browser starts no worker for a page that was opened from a folder. There, the search runs in a frame of the page,
// which the theme looks for by this name.
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = "<!doctype html><title>Search</title>";
      this.inner = new Promise((ready) => {
        frame.addEventListener("load", () => ready(frame.contentWindow), { once: true });
      }).then(async (inner) => {
        inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
        inner.importScripts = async (...addresses) => {
          for (const each of addresses) await load(inner, each);
        };
        await load(inner, address);
        return inner;
      });
      this.frame = frame;
      document.documentElement.append(frame);
    }
    async postMessage(data) {
      (await this.inner).dispatchEvent(new MessageEvent("message", { data }));
    }
    terminate() {
      this.frame.remove();
    }
  };

  function load(inner, address) {
    return new Promise((loaded, failed) => {
      const script = inner.document.createElement("script");
      script.src = address;
      script.onload = loaded;
      script.onerror = () => failed(new Error(`${address} cannot be loaded`));
      inner.document.head.append(script);
    });
  }
}
