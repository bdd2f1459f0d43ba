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

/// The shares from which a cell has each colour and mark, from the best.
const BANDS: [(f64, &str, &str); 5] = [
    (0.9, "#2fc197", "as due"),
    (0.66, "#8accf3", "to two thirds"),
    (0.4, "#f0e442", "to 0.4"),
    (0.25, "#f0b42d", "to a quarter"),
    (0.0, "#f08136", "less"),
];

fn band(share: f64) -> (&'static str, &'static str) {
    let (_, colour, words) = BANDS.into_iter().find(|(least, ..)| share >= *least).unwrap_or(BANDS[BANDS.len() - 1]);
    (colour, words)
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
        let heads =
            self.shapes.iter().map(|(n, name)| format!("<th scope=\"col\" title=\"{}\">{n}</th>", escape(name)));
        let mut rows = String::new();
        for (row, op) in self.ops.iter().enumerate() {
            rows += &format!("<tr><th scope=\"row\"><code>{}</code></th>", escape(op));
            for shape in self.shapes.keys() {
                rows += &match self.cells.get(&(row, *shape)) {
                    None => "<td></td>".to_string(),
                    Some((spec, share)) => {
                        let (colour, words) = band(*share);
                        format!(
                            "<td class=\"cell\" style=\"background:{colour}\" title=\"{}: {share:.2} of the due cost, \
                             {words}\">{:.1}</td>",
                            escape(spec),
                            share.min(9.9)
                        )
                    }
                };
            }
            rows += "</tr>\n";
        }
        let shapes =
            self.shapes.iter().map(|(n, name)| format!("<li value=\"{n}\"><code>{}</code></li>", escape(name)));
        let legend = BANDS.map(|(least, colour, words)| {
            format!("<span class=\"cell\" style=\"background:{colour}\">{least:.2}</span> {words} &nbsp; ")
        });
        let body = format!(
            "<style>.cell {{ color: #10161c; text-align: right; padding: .1rem .3rem; font-size: .72rem; border: 1px solid \
             var(--paper); }} .map th {{ padding: .1rem .4rem; font-size: .75rem; }} .map {{ border-collapse: collapse; }}</style>\n\
             <p>Each cell is the time that is due over the time that a call takes: 1 is as fast as the same op on wide rows of as many \
             bytes. The pointer shows the spec.</p>\n<p>{}</p>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"The \
             map\"><table class=\"map\"><thead><tr><td></td>{}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n",
            legend.concat(),
            heads.collect::<String>()
        );
        let sections = [
            Section { id: "map", title: "Ops and shapes, by the share of the due cost", body },
            Section { id: "shapes", title: "The shapes", body: format!("<ol>{}</ol>", shapes.collect::<String>()) },
        ];
        page(&format!("bench --scan --seed {seed} --shapes {}", self.shapes.len()), "", &sections)
    }
}
