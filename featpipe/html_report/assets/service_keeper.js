// Who keeps what reviewers say, in the service: the service itself, asked over HTTP.

const serviceKeeper = {
  hasCandidates: () => true,
  isShared: true,
  queue: (template, field) => request("review/queue", { template, ...(field && { field }) }),
  document: (template, key) => request("review/document", { template, key }),
  candidates: (template, key, field) => request("review/candidates", { template, key, field }),
  changes: (template) => request("review/changes", { template }),
  say: (body) => request("review/corrections", {}, body),
  accept: (body) => request("review/accept", {}, body),
  stateOf: (one) => (one.verdict === "accept" ? "" : say(one.is_accepted ? "learnt" : "pending")),
  /** What to do with all that was said. */
  act: (queue) => queue?.is_pending && make("p", { class: "queue-act" },
    button(say("see_changes"), () => openView("proposal"), { class: "primary" })),
};

/** One question to the service. A request that was not answered is sent once more: its id counts once. */
async function request(path, query, body, isSecond = false) {
  const address = `${path}?${new URLSearchParams(query)}`;
  const post = body && { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json", ...headers() } };
  let answer;
  try {
    answer = await fetch(body ? path : address, post ?? { headers: headers() });
  } catch {
    if (body && !isSecond) return request(path, query, body, true);
    throw new Error(say("no_answer"));
  }
  const content = await answer.json().catch(() => null);
  if (!answer.ok) throw new Error(reasonOf(content, answer));
  return content;
}
