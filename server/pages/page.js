// What every page can do in the browser: keys, and a view that its address remembers.
window.pitchpipe = {
  // Keep the choices of a page in its address; an empty value leaves one out.
  remember(choices) {
    const address = new URL(location.href);
    for (const [name, value] of Object.entries(choices)) {
      if (value) address.searchParams.set(name, value);
      else address.searchParams.delete(name);
    }
    history.replaceState(history.state, "", address);
  },
  // Hide a note, here and wherever it has this name.
  dismiss(name) {
    localStorage.setItem("pitchpipe-dismissed", JSON.stringify([...new Set([...this.dismissed(), name])].slice(-200)));
    this.hideDismissed();
  },
  dismissed() {
    try {
      const names = JSON.parse(localStorage.getItem("pitchpipe-dismissed") ?? "[]");
      return Array.isArray(names) ? names.map(String) : [];
    } catch {
      return []; // something else wrote it
    }
  },
  // A rule of style hides a note that is drawn later, too.
  hideDismissed() {
    const rules = this.dismissed().map((name) => `[data-note="${CSS.escape(name)}"] { display: none; }`);
    this.hiding ??= document.head.appendChild(document.createElement("style"));
    this.hiding.textContent = rules.join("\n");
  },
  // Remember the sort order, the filters and the shown columns of a grid; its usual columns are in its context.
  rememberGrid(api) {
    const { usual } = api.getGridOption("context");
    const columns = api.getColumnState().filter((column) => !column.hide && !column.colId.startsWith("ag-Grid"));
    const sorted = columns.find((column) => column.sort);
    const filter = api.getFilterModel();
    const shown = columns.map((column) => column.colId);
    this.remember({
      sort: sorted ? (sorted.sort === "desc" ? "-" : "") + sorted.colId : "",
      filter: Object.keys(filter).length ? JSON.stringify(filter) : "",
      columns: [...shown].sort().join() === [...usual].sort().join() ? "" : shown.map(encodeURIComponent).join(),
    });
  },
  // Remember the selected rows of a grid, as many as an address takes.
  rememberSelected(api) {
    this.remember({ selected: api.getSelectedNodes().map((row) => row.id).slice(0, 100).join() });
  },
  // Return what selects these rows of a grid once, as they come: those that were selected when the page was left.
  selecting(numbers) {
    const wanted = new Set(numbers.map(String));
    return ({ api }) => {
      for (const row of [...wanted].map((id) => api.getRowNode(id)).filter((one) => one?.data)) {
        wanted.delete(row.id);
        row.setSelected(true);
      }
    };
  },
  // Add columns to a grid after one of its columns; what was chosen of the others stays.
  addColumns(api, definitions, after) {
    api.setGridOption("columnDefs", [...api.getColumnDefs(), ...definitions]);
    const place = api.getAllGridColumns().findIndex((column) => column.getColId() === after);
    api.moveColumns(definitions.map((one) => one.colId), place + 1);
    const shown = definitions.filter((one) => !one.hide).map((one) => one.colId);
    api.getGridOption("context").usual.push(...shown);
  },
};

pitchpipe.hideDismissed();

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input, textarea, select, [contenteditable=true]");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const isMoving = event.target.closest(".ag-root-wrapper, [role=tablist], [role=slider], [role=listbox]");
  const go = (relation) => document.querySelector(`a[rel=${relation}]`)?.click();
  if (event.key === "/") {
    const field = document.querySelector(".pp-search input");
    if (!field) return;
    field.focus();
    event.preventDefault();
  } else if (event.key === "?") document.querySelector("dialog.pp-keys")?.showModal();
  else if (!isMoving && (event.key === "ArrowLeft" || event.key === "k")) go("prev");
  else if (!isMoving && (event.key === "ArrowRight" || event.key === "j")) go("next");
});

// NiceGUI keeps events until its connection is made, but not their order: a click could come before what was typed. Each
// kept event looks for the connection every 10 ms, so 50 ms after it all that was typed has been sent.
document.addEventListener(
  "click",
  (event) => {
    const button = event.target.closest("button");
    if (window.did_handshake !== false || !button || button.closest("dialog")) return;
    event.stopImmediatePropagation();
    event.preventDefault();
    const again = () => (window.did_handshake ? setTimeout(() => button.click(), 50) : setTimeout(again, 20));
    again();
  },
  true,
);
