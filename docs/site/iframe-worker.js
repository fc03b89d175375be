// Search for a site that is opened as files: browsers start no worker there, so that the script of
// the search runs in a hidden frame, with the interface of a worker.

class IFrameWorker extends EventTarget {
  constructor(url) {
    super();
    this.frame = document.createElement("iframe");
    this.frame.hidden = true;
    document.body.append(this.frame);
    this.scope = this.frame.contentWindow;
    this.receive = (event) => {
      if (event.source !== this.scope) return;
      const copy = new MessageEvent("message", { data: event.data });
      this.dispatchEvent(copy);
      this.onmessage?.(copy);
    };
    addEventListener("message", this.receive);
    const inside = this.scope.document;
    inside.open();
    inside.write(`<!doctype html><body><script>
      postMessage = (data) => parent.dispatchEvent(new MessageEvent("message", { data, source: window }));
      importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise((done) => {
        const script = Object.assign(document.createElement("script"), { src: url, onload: done });
        document.body.append(script);
      })), Promise.resolve());
    <\/script><script src="${url}"><\/script></body>`);
    inside.close();
    this.ready = new Promise((done) => { this.scope.onload = done; });
  }

  postMessage(data) {
    this.ready.then(() => this.scope.dispatchEvent(new MessageEvent("message", { data })));
  }

  terminate() {
    removeEventListener("message", this.receive);
    this.frame.remove();
  }
}

window.IFrameWorker = IFrameWorker;
if (location.protocol === "file:") window.Worker = IFrameWorker;
