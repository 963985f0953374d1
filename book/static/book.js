// What the theme leaves undone for readers of paper and of the keyboard.

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
