// Returns how many texts of the page are seen, and those whose contrast to their ground is below `least`.
(least) => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  // Red, green, blue and opacity of a colour, however the browser writes it.
  const parts = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
    return { rgb: [red, green, blue], alpha: alpha / 255 };
  };
  const over = (top, alpha, ground) => top.map((value, at) => alpha * value + (1 - alpha) * ground[at]);
  const ancestors = (element) => (element ? [...ancestors(element.parentElement), element] : []);
  // The colour of the ground behind a text, and that of the text, both mixed with what shines through.
  const seen = (element) => {
    let ground = parts(getComputedStyle(document.body).backgroundColor).rgb;
    let opacity = 1;
    for (const each of ancestors(element)) {
      const style = getComputedStyle(each);
      opacity *= Number(style.opacity);
      const own = parts(style.backgroundColor);
      ground = over(own.rgb, own.alpha * opacity, ground);
    }
    const text = parts(getComputedStyle(element).color);
    return { ground, text: over(text.rgb, text.alpha * opacity, ground) };
  };
  const linear = (value) => (value <= 0.04045 * 255 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = ([red, green, blue]) => 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
  const contrast = ({ ground, text }) => {
    const [dark, light] = [luminance(ground), luminance(text)].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const faint = [];
  let texts = 0;
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility({ visibilityProperty: true }) || element.closest("script, style, :disabled")) continue;
    texts += 1;
    const ratio = contrast(seen(element));
    if (ratio < least) faint.push(`${element.localName}.${element.className}: ${walker.currentNode.data.trim().slice(0, 40)} (${ratio.toFixed(2)})`);
  }
  return { texts, faint: [...new Set(faint)].slice(0, 12) };
}
