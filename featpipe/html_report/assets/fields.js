// The table of fields: one row per document, one column per field of a template. Only the rows in
// sight are in the page, so ten thousand of them scroll as ten do.

const ROW_HEIGHT = 46;
/** On paper all rows are in sight. */
let isPrinting = false;
const SPARE_ROWS = 8;

function fieldsView() {
  if (!facts.templates.length) {
    return make("div", { class: "empty" }, make("p", {}, say("no_results")),
      command(`featpipe reprocess --cache ${facts.cache} --templates templates/`));
  }
  const grid = new Grid();
  return make("div", { class: "fields" }, grid.tools, grid.frame);
}

class Grid {
  constructor() {
    this.asked = chosen.table;
    this.count = make("p", { class: "count quiet", role: "status" });
    this.tools = make("div", { class: "tools" });
    this.head = make("div", { class: "grid-row grid-head", role: "row", "aria-rowindex": "1" });
    this.body = make("div", { class: "grid-body", role: "rowgroup" });
    this.frame = make("div", {
      class: "grid", role: "grid", tabindex: "-1", "aria-label": say("fields"),
      on: { scroll: () => this.drawRows(), keydown: (event) => this.move(event) },
    }, this.head, this.body);
    this.at = [0, 0];
    new ResizeObserver(() => this.drawRows()).observe(this.frame);
    this.frame.redraw = () => this.drawRows(true);
    this.choose();
  }

  /** Another template: other columns. */
  choose() {
    const { asked } = this;
    this.template = facts.templates[asked.template];
    const entries = facts.docs.map((entry, number) => [entry, number])
      .filter(([entry]) => entry.values.some((row) => row[0] === asked.template));
    this.documents = entries.map(([entry, number]) => this.rowOf(entry, number));
    const hasRecords = entries.some(([entry]) => entry.records.some(([of]) => of === asked.template));
    this.rows = hasRecords && asked.byRecord ? this.documents.flatMap((row) => this.recordsOf(row)) : this.documents;
    replace(this.tools,
      facts.templates.length > 1 && choice(say("template"), facts.templates.map((t, i) => [String(i), t.name]),
        String(asked.template), (value) => {
          asked.template = Number(value);
          asked.sort = -1;
          this.choose();
        }),
      search(say("filter_rows"), asked.find, (text) => { asked.find = text; this.filter(); }),
      check(say("only_doubtful"), asked.onlyDoubtful, (isOn) => { asked.onlyDoubtful = isOn; this.filter(); }),
      check(say("only_missing"), asked.onlyMissing, (isOn) => { asked.onlyMissing = isOn; this.filter(); }),
      hasRecords && check(say("by_record"), asked.byRecord, (isOn) => { asked.byRecord = isOn; this.choose(); }),
      this.count,
      button(say("save_csv"), () => this.save(), { class: "save" }));
    this.filter();
  }

  rowOf(entry, number) {
    const cells = this.template.fields.map(() => []);
    for (const value of valuesOf(entry)) {
      if (value.template === this.asked.template) cells[value.field].push(value);
    }
    return { number, entry, cells };
  }

  /** A row for each record; values of other fields belong to each of them. Then one of what is in none. */
  recordsOf(row) {
    const listed = row.entry.records.find(([of]) => of === this.asked.template);
    if (!listed) return [row];
    const values = valuesOf(row.entry), [, numbers, records] = listed;
    const rows = records.map((record) => ({
      ...row,
      cells: row.cells.map((cell, field) => {
        const at = numbers.indexOf(field);
        return at < 0 ? cell : record[at] < 0 ? [] : [values[record[at]]];
      }),
    }));
    const rest = outsideRecords(values, listed);
    if (rest.some((cell) => cell.length)) rows.push({ ...row, cells: row.cells.map((_, field) => rest[numbers.indexOf(field)] ?? []) });
    return rows;
  }

  filter() {
    const { asked } = this, text = asked.find.trim().toLowerCase();
    this.shown = this.rows.filter(({ entry, cells }) => {
      if (asked.onlyMissing && cells.every((cell) => cell.length)) return false;
      if (asked.onlyDoubtful && !cells.some((cell) => cell.some((value) => isDoubtful(entry, value)))) return false;
      return !text || `${entry.id}\n${entry.title}`.toLowerCase().includes(text) ||
        cells.some((cell) => cell.some((value) => `${value.text}\n${value.value}`.toLowerCase().includes(text)));
    });
    if (asked.sort >= 0) this.shown.sort(this.order());
    this.count.textContent = say("n_rows", spell(this.shown.length));
    this.frame.setAttribute("aria-rowcount", String(this.shown.length + 1));
    this.frame.scrollTop = 0;
    this.at = [0, 0];
    this.drawHead();
    this.drawRows(true);
  }

  /** Numbers by their size and before texts; rows without a value always come last. */
  order() {
    const { sort, isDown } = this.asked, sign = isDown ? -1 : 1;
    const key = ({ entry, cells }) => (sort === 0 ? entry.id : cells[sort - 1][0]?.value || cells[sort - 1][0]?.text || "");
    const collator = new Intl.Collator(language === "zh" ? "zh" : "en", { numeric: true });
    const isNumber = (text) => /^-?\d+(\.\d+)?$/.test(text);
    const compare = (x, y) => (isNumber(x) && isNumber(y) ? x - y : isNumber(y) - isNumber(x) || collator.compare(x, y));
    return (a, b) => {
      const [x, y] = [key(a), key(b)];
      return !x || !y ? Boolean(y) - Boolean(x) : sign * compare(x, y);
    };
  }

  drawHead() {
    const { asked } = this;
    const column = (name, number, extra) => make("div", {
      class: number ? "cell" : "cell first", role: "columnheader", "aria-colindex": number + 1,
      "aria-sort": asked.sort !== number ? null : asked.isDown ? "descending" : "ascending",
      vars: number ? { hue: hueOf(number - 1) } : {},
    }, button(name, () => {
      asked.isDown = asked.sort === number && !asked.isDown;
      asked.sort = number;
      this.filter();
    }, { class: "sort" }), extra);
    const filled = (field) => {
      const counted = this.documents.filter(({ entry }) => !isSample(entry, this.asked.template, field));
      const n = counted.filter(({ cells }) => cells[field].length).length;
      const label = say("filled", spell(n), spell(counted.length));
      return make("span", { class: "filled", title: label, role: "img", "aria-label": label },
        make("span", { vars: { share: n / Math.max(1, counted.length) } }));
    };
    this.frame.style.setProperty("--columns", this.template.fields.length);
    replace(this.head, column(say("document"), 0), this.template.fields.map((name, i) => column(name, i + 1, filled(i))));
  }

  drawRows(isNew = false) {
    const first = isPrinting ? 0 : Math.max(0, Math.floor(this.frame.scrollTop / ROW_HEIGHT) - SPARE_ROWS);
    const n = isPrinting ? this.shown.length : Math.ceil((this.frame.clientHeight || 800) / ROW_HEIGHT) + 2 * SPARE_ROWS;
    if (!isNew && first === this.first && n === this.n) return;
    const hadFocus = this.body.contains(document.activeElement);
    [this.first, this.n] = [first, n];
    this.body.style.height = `${Math.max(1, this.shown.length) * ROW_HEIGHT}px`;
    replace(this.body, this.shown.length
      ? this.shown.slice(first, first + n).map((row, i) => this.drawRow(row, first + i))
      : make("p", { class: "empty" }, say("no_match")));
    if (hadFocus) this.cell()?.focus({ preventScroll: true });
  }

  drawRow(row, at) {
    const line = make("div", { class: "grid-row", role: "row", "aria-rowindex": at + 2 });
    line.style.transform = `translateY(${at * ROW_HEIGHT}px)`;
    line.append(this.drawCell(at, 0, "rowheader", [isSample(row.entry, this.asked.template) && sampleBadge(), row.entry.title || row.entry.id].filter(Boolean), row.entry.id, () => openDocument(row.number)));
    row.cells.forEach((values, field) => {
      const [value] = values;
      line.append(value
        ? this.drawCell(at, field + 1, "gridcell", [
          make("span", { class: "cell-text" }, value.text),
          ...contradictionsOf(row.entry, this.asked.template, field).slice(0, 1).map((one) => warningSign(contradictionText(one))),
          make("span", { class: `level ${grade(value.p)}`, vars: { share: value.p }, "aria-hidden": "true" }),
          values.length > 1 && make("span", { class: "more-values", title: say("more_values", spell(values.length - 1)) }, `+${values.length - 1}`),
        ], values.map((v) => `${v.text} · ${say(grade(v.p))} ${chance(v.p)}`).join("\n"), () => openDocument(row.number, value.at))
        : this.drawCell(at, field + 1, "gridcell", [make("span", { class: "quiet" }, "\u2013")], say("nothing_found"), () => openDocument(row.number)));
    });
    return line;
  }

  drawCell(row, column, role, content, title, press) {
    return make("button", {
      type: "button", role, class: column ? "cell" : "cell first", title, "aria-colindex": column + 1,
      tabindex: row === this.at[0] && column === this.at[1] ? "0" : "-1",
      "data-row": row, "data-column": column, on: { click: press, focus: () => { this.at = [row, column]; } },
    }, content);
  }

  cell() {
    return this.body.querySelector(`[data-row="${this.at[0]}"][data-column="${this.at[1]}"]`);
  }

  /** Arrow keys, Home, End and Page keys, as in a spreadsheet. */
  move(event) {
    if (!this.body.contains(event.target)) return;
    const page = Math.max(1, Math.floor(this.frame.clientHeight / ROW_HEIGHT) - 2);
    const step = {
      ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1],
      PageDown: [page, 0], PageUp: [-page, 0], Home: [0, -1e6], End: [0, 1e6],
    }[event.key];
    if (!step) return;
    event.preventDefault();
    const clamp = (n, most) => Math.min(Math.max(n, 0), most);
    this.at = [clamp(this.at[0] + step[0], this.shown.length - 1), clamp(this.at[1] + step[1], this.template.fields.length)];
    const top = this.at[0] * ROW_HEIGHT, height = this.frame.clientHeight - 2 * ROW_HEIGHT;
    if (top < this.frame.scrollTop) this.frame.scrollTop = top;
    else if (top > this.frame.scrollTop + height) this.frame.scrollTop = top - height;
    this.drawRows(true);
    const cell = this.cell();
    cell?.focus({ preventScroll: true });
    cell?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  /** What is shown, as a file a spreadsheet opens; what it may run gets an apostrophe, as in `featpipe.extraction.results_file`. */
  save() {
    const isFormula = (text) => /^[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]./s.test(text) && !/^[+-]?\d[\d,]*(\.\d+)?(e[+-]?\d+)?%?$/i.test(text);
    const quote = (text) => `"${(isFormula(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
    const lines = [[say("document"), ...this.template.fields],
      ...this.shown.map(({ entry, cells }) => [entry.id, ...cells.map((cell) => cell.map((v) => v.text).join("; "))])];
    saveFile(["\ufeff", lines.map((line) => line.map(quote).join(",")).join("\r\n")], "text/csv", `${this.template.name}.csv`);
  }
}

for (const [event, isOn] of [["beforeprint", true], ["afterprint", false]]) {
  addEventListener(event, () => { isPrinting = isOn; document.querySelector(".grid")?.redraw(); });
}
