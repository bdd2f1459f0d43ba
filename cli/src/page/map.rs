//! The map of a scan: ops down, shapes across, each by its share of the time that is due.

use super::html::{Section, escape, page};
use cranefold::Spec;
use std::collections::BTreeMap;

/// The map in the making.
#[derive(Debug, Default)]
pub struct Map {
    /// The names of shapes by their numbers.
    shapes: BTreeMap<usize, String>,
    /// The ops in order.
    ops: Vec<String>,
    /// The spec and the share of an op on a shape.
    cells: BTreeMap<(usize, usize), (String, f64)>,
}

/// The shares from which a cell has each colour, from the best, and the words for them.
const BANDS: [(f64, &str, &str); 5] = [
    (0.9, "#2fc197", "0.9 and more"),
    (0.66, "#8accf3", "0.66 to 0.9"),
    (0.4, "#f0e442", "0.4 to 0.66"),
    (0.25, "#f0b42d", "0.25 to 0.4"),
    (0.0, "#f08136", "under 0.25"),
];

fn colour(share: f64) -> &'static str {
    BANDS.into_iter().find(|(least, ..)| share >= *least).unwrap_or(BANDS[BANDS.len() - 1]).1
}

impl Map {
    /// Adds the share of an op on a shape.
    pub fn add(&mut self, shape: usize, op: &str, spec: &Spec, share: f64) {
        let extents: Vec<String> = spec.shape().iter().map(u64::to_string).collect();
        let axes: Vec<String> = spec.axes().iter().map(usize::to_string).collect();
        self.shapes.entry(shape).or_insert_with(|| format!("[{}] axes=[{}]", extents.join(","), axes.join(",")));
        let row = self.ops.iter().position(|known| known == op).unwrap_or_else(|| {
            self.ops.push(op.to_string());
            self.ops.len() - 1
        });
        self.cells.insert((row, shape), (spec.to_string(), share));
    }

    /// The page.
    pub fn page(&self, seed: u64) -> String {
        let heads = self.shapes.iter().map(|(n, name)| {
            format!("<th scope=\"col\" title=\"{}\"><a href=\"#shape-{n}\">{n}</a></th>", escape(name))
        });
        let mut rows = String::new();
        for (row, op) in self.ops.iter().enumerate() {
            rows += &format!("<tr><th scope=\"row\"><code>{}</code></th>", escape(op));
            for shape in self.shapes.keys() {
                rows += &match self.cells.get(&(row, *shape)) {
                    None => "<td></td>".to_string(),
                    Some((spec, share)) => {
                        format!(
                            "<td class=\"cell\" style=\"background:{}\" title=\"{}: {share:.2} of the due speed\">{:.1}</td>",
                            colour(*share),
                            escape(spec),
                            share.min(9.9)
                        )
                    }
                };
            }
            rows += "</tr>\n";
        }
        let shapes = self
            .shapes
            .iter()
            .map(|(n, name)| format!("<li value=\"{n}\" id=\"shape-{n}\"><code>{}</code></li>", escape(name)));
        let legend = BANDS.map(|(_, colour, words)| {
            format!("<span class=\"legend\"><span class=\"cell\" style=\"background:{colour}\">&emsp;</span> {words}</span> ")
        });
        let body = format!(
            "<p>Each cell is the time that is due over the time that a call takes: 1 is as fast as the same op on wide rows of as many \
             bytes, 0.5 takes twice as long. The head of a column leads to its shape; the pointer shows a cell's spec.</p>\n<p>{}</p>\n\
             <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"The map\"><table \
             class=\"map\"><thead><tr><td></td>{}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n",
            legend.concat(),
            heads.collect::<String>()
        );
        let sections = [
            Section { id: "map", title: "Ops and shapes, by the share of the due speed", body },
            Section { id: "shapes", title: "The shapes", body: format!("<ol>{}</ol>", shapes.collect::<String>()) },
        ];
        page(&format!("bench --scan --seed {seed} --shapes {}", self.shapes.len()), "", &sections)
    }
}
