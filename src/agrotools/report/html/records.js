// Records of the page: one object for each row of the list, and what is derived from several of them.

let records = [];

// Rows as objects. In the file each row is a list, to keep the page small; `columns` names its values (page.py).
const namedRows = ({ columns, rows }) =>
  rows.map((row) => Object.fromEntries(columns.map((name, at) => [name, row[at]])));

// Read the list of samples: numbers of modes, samples and parts become what they stand for.
// A record that the page has already stays the same object, so that its row and the choice of it survive new records.
function readIndex(index) {
  const samples = namedRows(index.samples);
  const known = new Map(records.map((record) => [keyOf(record), record]));
  records = namedRows(index.records).map((row, place) => {
    const mode = index.modes[row.mode];
    const sample = samples[row.sample];
    const record = {
      ...row,
      place,
      mode,
      sample,
      lost: Object.fromEntries(row.lost.map(([part, points]) => [index.parts[part], points])),
      state: row.value === null && !row.invalid ? "unscored" : stateOf(row.value),
      link: [runs[row.run].name, mode, sample.id, row.epoch].map(encodeURIComponent).join("/"),
    };
    return Object.assign(known.get(keyOf(record)) ?? {}, record);
  });
  markDisagreements();
}

// The block tells a record from the invalid one that it replaces.
const keyOf = (record) => `${record.link} ${record.block}`;

// Runs disagree on a sample if its best and worst scores are at least half apart; privileged baselines do not count.
function markDisagreements() {
  const ends = new Map();
  for (const record of records) {
    if (record.value === null || runs[record.run].privileged) continue;
    const key = `${record.mode} ${record.sample.id}`;
    const end = ends.get(key) ?? ends.set(key, { low: record.value, high: record.value }).get(key);
    end.low = Math.min(end.low, record.value);
    end.high = Math.max(end.high, record.value);
  }
  for (const record of records) {
    const end = ends.get(`${record.mode} ${record.sample.id}`);
    record.disagree = Boolean(end) && end.high - end.low >= 0.5;
  }
}

const lostBy = (record, part) => (record.lost[part] ?? 0) > 0;
const mainPart = (record) => Object.entries(record.lost).sort((a, b) => b[1] - a[1])[0]?.[0];

function siblings(record) {
  return records
    .filter(
      (each) =>
        each.sample === record.sample &&
        each !== record &&
        (each.run !== record.run || each.mode !== record.mode || each.epoch !== record.epoch),
    )
    .sort((a, b) => (a.mode !== record.mode) - (b.mode !== record.mode) || a.run - b.run);
}
