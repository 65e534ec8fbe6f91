// xterm.js styles itself by <style> elements it makes. The page's policy allows
// those that carry its nonce; this puts it on them. It must run before xterm.js.
(() => {
  const nonce = document.currentScript.dataset.nonce;
  const create = document.createElement;
  document.createElement = function (name, options) {
    const element = create.call(this, name, options);
    if (String(name).toLowerCase() === "style") element.nonce = nonce;
    return element;
  };
})();
