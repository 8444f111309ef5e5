// Lets the search work on pages that are opened from a disk, where browsers start no workers: the
// script of the worker runs in a hidden frame of the page instead. Messages are copied, as those of
// real workers are, because both sides change what they got.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      this.inside = this.frame.contentWindow;
      this.inside.postMessage = (data) => setTimeout(() => this.deliver(data));
      this.inside.importScripts = (...urls) =>
        urls.reduce((before, each) => before.then(() => this.load(each)), Promise.resolve());
      this.ready = this.load(url);
    }

    // a message to the worker
    postMessage(data) {
      this.ready.then(() => {
        const event = new this.inside.MessageEvent("message", { data: structuredClone(data) });
        this.inside.dispatchEvent(event);
      });
    }

    // a message from the worker
    deliver(data) {
      const event = new MessageEvent("message", { data: structuredClone(data) });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }

    load(url) {
      return new Promise((resolve, reject) => {
        const script = this.inside.document.createElement("script");
        script.src = new URL(url, location.href).href;
        script.onload = resolve;
        script.onerror = reject;
        this.inside.document.body.append(script);
      });
    }

    terminate() {
      this.frame.remove();
    }
  };
}
