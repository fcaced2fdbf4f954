// The address of a view. Links and the Back key of the browser rest on it.

// The address is #VIEW?NAME=VALUE&… ; what is not in it has its default.
function readAddress() {
  const [view, query = ""] = location.hash.slice(1).split("?");
  let parameters = new URLSearchParams();
  try {
    parameters = new URLSearchParams(query);
  } catch {
    /* a broken address shows the default */
  }
  return { view, parameters };
}

function address(view, values = {}) {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(values))
    if (value !== "" && value !== undefined && value !== null) parameters.set(name, value);
  const query = parameters.toString().replaceAll("%2F", "/").replaceAll("%3A", ":");
  return `#${view}${query ? `?${query}` : ""}`;
}
