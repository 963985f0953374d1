// What the theme leaves undone for readers of paper, of the keyboard, of phones and of dark pages.

/** Paper is white: colours are those of light mode while a page is printed. */
addEventListener("beforeprint", () => {
  const root = document.documentElement;
  const { mode, theme } = root.dataset;
  Object.assign(root.dataset, { mode: "light", theme: "light" });
  addEventListener("afterprint", () => Object.assign(root.dataset, { mode, theme }), { once: true });
});

document.addEventListener("DOMContentLoaded", () => {
  // The entries of the bibliography have a role that is no longer in use, in a list that wants items.
  for (const entry of document.querySelectorAll("[role=doc-biblioentry]")) entry.setAttribute("role", "listitem");
  // The title of the book stands in the sidebar, outside of any landmark.
  document.querySelector(".sidebar-primary-item:has(.navbar-brand)")?.setAttribute("role", "banner");
  // A long signature has its parameters in a list of definitions that defines nothing.
  for (const part of document.querySelectorAll("dt.sig dl, dt.sig dd")) part.setAttribute("role", "none");
  // The index is set in columns by tables that hold no data.
  for (const table of document.querySelectorAll("table.indextable")) table.setAttribute("role", "presentation");
  // The sidebar unfolds a chapter's pages with an arrow that has no name.
  for (const summary of document.querySelectorAll(".bd-sidebar-primary .has-children > details > summary")) {
    summary.setAttribute("aria-label", `Pages of ${summary.closest("li").querySelector("a").textContent.trim()}`);
  }
});

// MathJax makes every formula a stop of the Tab key, hundreds on a page; only one that scrolls needs to be reached.
addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  for (const formula of document.querySelectorAll("mjx-container[tabindex]")) {
    const scrolls = formula.matches("[display=true]") && formula.scrollWidth > formula.clientWidth;
    if (!scrolls) formula.removeAttribute("tabindex");
  }
});

// The theme lets the Tab key reach code that is too wide when the window changes, but not when a solution unfolds.
addEventListener("click", (event) => {
  if (event.target.closest(".toggle, summary")) dispatchEvent(new Event("resize"));
});

/** The menu and the contents. The theme listens to the first button of each kind, which stands in a header that is not
 *  shown (book.css): clicks on the others are handed on to it. On narrow screens it then moves the sidebar into a
 *  dialog, which has to be closed again by tap as well. */
document.addEventListener("DOMContentLoaded", () => {
  for (const [kind, label] of [["primary", "Menu"], ["secondary", "Contents of this page"]]) {
    const [bound, ...others] = document.querySelectorAll(`.${kind}-toggle`);
    const sidebar = document.getElementById(`pst-${kind}-sidebar`);
    const dialog = document.getElementById(`pst-${kind}-sidebar-modal`);
    if (!bound || !sidebar || !dialog) continue;
    const wide = matchMedia(kind === "primary" ? "(min-width: 992px)" : "(min-width: 1200px)");
    const tell = () => {
      const open = wide.matches ? !sidebar.classList.contains("pst-sidebar-hidden") : dialog.open;
      for (const button of others) button.setAttribute("aria-expanded", open);
    };
    for (const button of others) {
      window.bootstrap?.Tooltip.getInstance(button)?.dispose(); // it comes back with the focus, and covers its neighbours
      button.setAttribute("aria-label", label);
      button.addEventListener("click", () => {
        bound.click();
        tell();
      });
    }
    const close = document.createElement("button");
    Object.assign(close, { type: "button", className: "lb-close", textContent: "Close" });
    close.addEventListener("click", () => dialog.close());
    sidebar.prepend(close); // it moves along, and is shown in the dialog alone
    dialog.setAttribute("aria-label", label);
    dialog.addEventListener("close", tell);
    // A link within the page leaves the page where it is, so the dialog would stay in front of it.
    dialog.addEventListener("click", (event) => event.target.closest("a[href*='#']") && dialog.close());
    wide.addEventListener("change", () => {
      if (wide.matches && dialog.open) dialog.close();
      tell();
    });
    tell();
  }
});

/** Figures. On a phone their text is too small to read, so a tap shows them at the size they were drawn for, to pan. */
document.addEventListener("DOMContentLoaded", () => {
  const pictures = [...document.querySelectorAll(".bd-article figure > img")].filter((e) => !e.closest(".lb-explorer"));
  if (!pictures.length) return;
  const dialog = document.createElement("dialog");
  dialog.className = "lb-enlarged";
  dialog.innerHTML = `<header><strong></strong><button type="button" class="lb-close">Close</button></header>
    <div class="lb-pan" tabindex="0" role="region"></div>`;
  document.body.append(dialog);
  const [title, close, pan] = dialog.querySelectorAll("strong, button, .lb-pan");

  const show = (picture, name) => {
    const copy = picture.cloneNode();
    const drawn = Number(picture.getAttribute("width")) || picture.naturalWidth;
    const shape = picture.naturalHeight / picture.naturalWidth;
    // Where there is more room, up to twice the size, as far as all of it is seen.
    const room = Math.min(innerWidth - 32, (innerHeight - 96) / shape, 2 * drawn);
    copy.style.width = `${Math.max(drawn, room)}px`;
    copy.removeAttribute("height");
    title.textContent = name;
    dialog.setAttribute("aria-label", name);
    pan.setAttribute("aria-label", `${name}, scrolls`);
    pan.classList.toggle("lb-as-drawn", picture.closest("figure").classList.contains("lb-as-drawn"));
    pan.replaceChildren(copy);
    dialog.showModal();
    pan.scrollTo(0, 0);
    pan.focus(); // so that the arrow keys pan
  };

  for (const picture of pictures) {
    const figure = picture.closest("figure");
    const caption = figure.querySelector("figcaption");
    const name = caption?.querySelector(".caption-number")?.textContent.trim() || "Picture";
    const button = document.createElement("button");
    Object.assign(button, { type: "button", className: "lb-enlarge", textContent: "Enlarge" });
    button.setAttribute("aria-label", `Enlarge ${name}`);
    button.addEventListener("click", () => show(picture, name));
    picture.addEventListener("click", () => show(picture, name));
    picture.after(button);
    // Dark mode turns light into dark. A caption that says what dark or light means would then be wrong.
    const speaks = /\b(dark|black|light|white|pale|bright)(er)?\b/i.test(caption?.textContent ?? "");
    figure.classList.toggle("lb-as-drawn", speaks);
  }

  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return; // a script of Sphinx takes it away otherwise
    event.preventDefault();
    event.stopPropagation();
    dialog.close();
  });
  // A finger scrolls by itself; a mouse drags. A click beside the picture closes.
  let from = null;
  pan.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "mouse" || event.button !== 0) return;
    event.preventDefault();
    from = { x: event.clientX + pan.scrollLeft, y: event.clientY + pan.scrollTop };
  });
  addEventListener("pointermove", (event) => from && pan.scrollTo(from.x - event.clientX, from.y - event.clientY));
  addEventListener("pointerup", () => (from = null));
  pan.addEventListener("click", (event) => event.target === pan && dialog.close());
});

/** A line of context under each result of the search, from texts that the build leaves beside the index
 *  (tools/context.py): Sphinx's own way loads every page found, which weighs much and fails from disk. */
document.addEventListener("DOMContentLoaded", () => {
  const results = document.getElementById("search-results");
  if (!results || !window.LAPBOOK_TEXTS) return;
  const query = new URLSearchParams(location.search).get("q") ?? "";
  const words = query.toLowerCase().split(/[^\p{L}\p{N}_]+/u).filter((word) => word.length > 1);

  const passage = (text) => {
    const places = words.map((word) => text.toLowerCase().indexOf(word)).filter((place) => place >= 0);
    const middle = places.length ? Math.min(...places) : 0;
    const start = middle < 80 ? 0 : text.indexOf(" ", middle - 80) + 1;
    const end = text.length < start + 220 ? text.length : text.lastIndexOf(" ", start + 220);
    return { found: places.length, text: `${start ? "… " : ""}${text.slice(start, end)}${end < text.length ? " …" : ""}` };
  };
  /** The text with the words that were looked for in bold, as nodes. */
  const marked = (text) => {
    if (!words.length) return [text];
    const pieces = text.split(new RegExp(`(${words.join("|")})`, "i"));
    return pieces.map((piece, i) => {
      if (i % 2 === 0) return piece;
      return Object.assign(document.createElement("b"), { textContent: piece });
    });
  };
  const explain = (item) => {
    const link = item.querySelector(":scope > a");
    if (!link || item.querySelector(".context")) return;
    const url = new URL(link.href);
    const page = url.pathname.slice(new URL(".", location.href).pathname.length).replace(/\.html$/, "");
    const sections = LAPBOOK_TEXTS[page];
    if (!sections) return;
    const own = url.hash && sections[decodeURIComponent(url.hash.slice(1))];
    const passages = (own ? [own] : Object.values(sections)).map(passage);
    const best = passages.reduce((a, b) => (b.found > a.found ? b : a));
    const context = Object.assign(document.createElement("p"), { className: "context" });
    context.append(...marked(best.text));
    item.append(context);
  };
  new MutationObserver(() => {
    for (const item of results.querySelectorAll("ul.search > li")) explain(item);
  }).observe(results, { childList: true, subtree: true });
});
