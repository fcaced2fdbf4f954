// What the model was sent, and what it replied, word for word.

function sentView(data) {
  if (!data.sent.length) return null;
  const total = data.sent.reduce((sum, request) => sum + request.messages.length, 0);
  return fold(
    `What the model was sent (${count(data.sent.length, "request")}, ${count(total, "message")})`,
    async () =>
      Promise.all(
        data.sent.map(async (request, at) =>
          el(
            "section.request",
            {},
            el(
              "h4",
              {},
              `Request ${at + 1}`,
              request.shared > 0 && el("small.dim", {}, ` after the ${count(request.shared, "message")} above`),
            ),
            await Promise.all(
              request.messages.map(async (message) =>
                el(
                  "div.message",
                  {},
                  el("p.word", {}, message.role),
                  await Promise.all(message.texts.map(async (text) => rawText(await textOf(text)))),
                ),
              ),
            ),
            request.tools !== "" && fold("tools offered", async () => rawText(await textOf(request.tools))),
          ),
        ),
      ),
    ".card",
  );
}

function rawReplies(data) {
  const all = data.steps.filter((step) => step.reply),
    replies = all.filter((step) => step.reply.text);
  const others = all.length > replies.length ? `; ${all.length - replies.length} without text` : "";
  return (
    replies.length > 0 &&
    fold(
      `Raw replies (${replies.length}${others})`,
      () => replies.map((step) => el("div.message", {}, el("p.word", {}, `step ${step.n}`), rawText(step.reply.text))),
      ".card",
    )
  );
}
