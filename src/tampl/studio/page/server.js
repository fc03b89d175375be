// Requests to the studio's server. Whoever asks again gets the newest answer only.

export class Refusal extends Error {}

async function send(path, { body, signal } = {}) {
  const raw = body instanceof Blob;
  const response = await fetch(path, {
    method: body === undefined ? "GET" : "POST",
    headers: body === undefined || raw ? {} : { "Content-Type": "application/json" },
    body: raw || body === undefined ? body : JSON.stringify(body),
    signal,
  });
  if (!response.ok) {
    const problem = await response.json().catch(() => ({}));
    throw new Refusal(problem.detail ?? `the server answered ${response.status}`);
  }
  return response;
}

export async function ask(path, body, signal) {
  return (await send(path, { body, signal })).json();
}

// Calls `onEvent` with every line of JSON as it comes.
export async function stream(path, body, signal, onEvent) {
  const reader = (await send(path, { body, signal })).body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line) onEvent(JSON.parse(line));
  }
}

// One question at a time: while an answer is on its way, the newest question waits for it, unless
// the answer takes long, when it is no longer waited for.
export class Latest {
  constructor(run, patience = 400) {
    this.run = run;
    this.patience = patience;
    this.busy = null;
    this.again = false;
  }

  call() {
    if (!this.busy) return this.begin();
    this.again = true;
    if (performance.now() - this.since > this.patience) this.busy.abort();
  }

  async begin() {
    const controller = new AbortController();
    this.busy = controller;
    this.since = performance.now();
    try {
      await this.run(controller.signal);
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    } finally {
      this.busy = null;
      if (this.again) {
        this.again = false;
        this.begin();
      }
    }
  }
}
