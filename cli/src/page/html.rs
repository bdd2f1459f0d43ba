//! Text, tags and the frame of a page: escaped, without a network, for light and dark, screen and paper.

use std::fmt::Write;

/// The text with the characters escaped that mean something in HTML and SVG, in text and in quoted attributes. Control
/// characters, which neither may hold, become the replacement character.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            c if c.is_control() && !matches!(c, '\n' | '\t') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// The colours, by Okabe and Ito, who chose them to be told apart by the colour-blind; darker or lighter where the
/// background asks for it.
pub const STYLE: &str = "
:root { --ink: #1c2733; --paper: #ffffff; --soft: #f2f5f8; --line: #c6ced6; --mute: #56616c;
  --blue: #0072b2; --sky: #56b4e9; --green: #009e73; --orange: #e69f00; --red: #d55e00; --pink: #cc79a7; --yellow: #f0e442;
  --leaf: #025322; --wine: #a4006c; --hot: #fdf0cf; }
@media screen and (prefers-color-scheme: dark) { :root { --ink: #e6ebf0; --paper: #14191f; --soft: #1e252d; --line: #414c57;
  --mute: #a3afba; --blue: #4aa8e0; --sky: #8accf3; --green: #2fc197; --orange: #f0b42d; --red: #f08136; --pink: #df9dc1;
  --leaf: #26e1a9; --wine: #f12b8e; --hot: #4a3a10; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, 'DejaVu Sans', sans-serif; }
main, header { max-width: 74rem; margin: 0 auto; padding: 1rem 1.25rem; }
h1 { font-size: 1.35rem; margin: .4rem 0; overflow-wrap: anywhere; } h2 { font-size: 1.1rem; margin: 2rem 0 .3rem; }
section:first-child h2 { margin-top: 0; }
p { max-width: 46rem; margin: .3rem 0 .6rem; } .mute, figcaption { color: var(--mute); font-size: .9rem; } figcaption { max-width: 46rem; }
code, pre, .mono { font-family: ui-monospace, 'DejaVu Sans Mono', Menlo, monospace; font-size: .82rem; } h1 code { font-size: 1em; }
nav { margin-top: .6rem; } nav a { margin-right: 1rem; } a { color: var(--blue); }
a:focus-visible, .scroll:focus-visible, summary:focus-visible { outline: 3px solid var(--orange); outline-offset: 2px; }
.skip { position: absolute; left: -999px; } .skip:focus { position: static; }
.scroll { overflow-x: auto; max-width: 100%; background: linear-gradient(90deg, var(--paper) 40%, transparent) 0 0 / 2rem 100% no-repeat
  local, linear-gradient(270deg, var(--paper) 40%, transparent) 100% 0 / 2rem 100% no-repeat local, linear-gradient(90deg, var(--line),
  transparent) 0 0 / .8rem 100% no-repeat scroll, linear-gradient(270deg, var(--line), transparent) 100% 0 / .8rem 100% no-repeat scroll; }
figure { margin: .5rem 0; } svg { display: block; max-width: none; } svg.fit { width: 100%; height: auto; }
svg text { fill: var(--ink); font: 12px ui-monospace, 'DejaVu Sans Mono', monospace; }
svg .mute { fill: var(--mute); font-size: 12px; } svg .small { font-size: 11px; } svg .on { fill: #10161c; }
table { border-collapse: collapse; } th, td { text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0; }
th { font-weight: 600; white-space: nowrap; } .facts td { overflow-wrap: anywhere; }
.code { width: 100%; border-collapse: collapse; table-layout: fixed; } .code td, .code th { padding: .3rem .6rem .3rem 0;
  border-top: 1px solid var(--line); } .code thead th:first-child { width: 7rem; } .code th { white-space: normal; }
.code pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; }
.code span.line { display: block; padding-left: calc(var(--in) * 1ch + 4ch); text-indent: calc(var(--in) * -1ch - 4ch); }
.code tr.hot td, .code tr.hot th { background: var(--hot); } .code tr.hot th { box-shadow: inset 4px 0 var(--orange); padding-left: .6rem; }
.badge { background: var(--orange); color: #10161c; padding: 0 .4rem; border-radius: .3rem; font-size: .75rem; font-weight: 600; }
.map { border-collapse: collapse; } .map th { padding: .1rem .4rem; font-size: .75rem; } .map a { color: inherit; }
.map tbody th { position: sticky; left: 0; background: var(--paper); } .cell { color: #10161c; text-align: right; padding: .1rem .3rem;
  font-size: .72rem; border: 1px solid var(--paper); print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.legend { white-space: nowrap; margin-right: 1rem; } li:target { background: var(--hot); }
details pre { background: var(--soft); padding: .8rem; overflow-x: auto; } summary { cursor: pointer; }
@media screen and (max-width: 52rem) { .code thead { display: none; } .code td, .code th { display: block; } .code tbody th {
  border-top: 3px solid var(--line); } .code td:empty { display: none; } .code td::before { color: var(--mute); font-size: .75rem; }
  .code td:nth-child(2)::before { content: 'statements'; } .code td:nth-child(3)::before { content: 'machine code'; } }
@media print { html { font-size: 11px; } body { font-size: 1rem; } .scroll { overflow: visible; background: none; } nav, .skip { display: none; }
  svg { max-width: 100%; height: auto; } details pre { white-space: pre-wrap; } h2 { break-after: avoid; } figure { break-inside: avoid; }
  .badge, .hot th, .hot td { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
";

/// The colours of lines, which stand alone on the background: nobody has two of them alike.
pub const LINES: [&str; 5] = ["blue", "red", "leaf", "wine", "ink"];

/// A section of a page: its anchor, title and content.
pub struct Section {
    pub id: &'static str,
    pub title: &'static str,
    pub body: String,
}

/// A whole page: title and head are plain text and HTML.
pub fn page(title: &str, head: &str, sections: &[Section]) -> String {
    let title = escape(title);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<link \
         rel=\"icon\" href=\"data:,\">\n<title>{title} - cranefold</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<a \
         class=\"skip\" href=\"#main\">Skip to the pictures</a>\n<header>\n<h1><code>{title}</code></h1>\n{head}\n<nav \
         aria-label=\"Sections\">"
    );
    for Section { id, title, .. } in sections {
        write!(page, "<a href=\"#{id}\">{}</a>", escape(title)).expect("a string takes all text");
    }
    page += "</nav>\n</header>\n<main id=\"main\">\n";
    for Section { id, title, body } in sections {
        write!(page, "<section id=\"{id}\">\n<h2>{}</h2>\n{body}\n</section>\n", escape(title))
            .expect("a string takes all text");
    }
    page + "</main>\n</body>\n</html>\n"
}

/// A table of two columns, of plain text.
pub fn facts(rows: &[(&str, String)]) -> String {
    let row =
        |(name, text): &(&str, String)| format!("<tr><th scope=\"row\">{name}</th><td>{}</td></tr>\n", escape(text));
    format!("<table class=\"facts\">\n{}</table>", rows.iter().map(row).collect::<String>())
}

/// A picture in a frame that scrolls by itself where the page is narrow; the name is read aloud in its place.
pub fn figure(svg: &Svg, name: &str, caption: &str) -> String {
    let name = escape(name);
    format!(
        "<figure><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{name}\">\n{}\n</div>\n<figcaption>{}</figcaption></figure>",
        svg.text(&name),
        escape(caption)
    )
}

/// A picture in the making.
pub struct Svg {
    width: f64,
    height: f64,
    body: String,
    /// True of a picture that is as wide as the page, within limits; another has one size.
    fits: bool,
}

/// The most that a picture which fits the page is enlarged.
const ENLARGED: f64 = 1.25;

impl Svg {
    /// An empty picture of one size.
    pub fn new(width: f64, height: f64) -> Svg {
        Svg { width, height, body: String::new(), fits: false }
    }

    /// An empty picture that grows and shrinks with the page.
    pub fn fitting(width: f64, height: f64) -> Svg {
        Svg { fits: true, ..Svg::new(width, height) }
    }

    fn add(&mut self, element: std::fmt::Arguments) {
        self.body.write_fmt(element).expect("a string takes all text");
        self.body.push('\n');
    }

    /// A box in a colour of the style, such as `sky`.
    pub fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), fill: &str) {
        self.add(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"2\" fill=\"var(--{fill})\" \
             stroke=\"var(--line)\"/>"
        ));
    }

    /// Plain text; `anchor` is `start`, `middle` or `end`, and `class` any of the style's.
    pub fn words(&mut self, (x, y): (f64, f64), anchor: &str, class: &str, text: &str) {
        let text = escape(text);
        self.add(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">{text}</text>"
        ));
    }

    /// A line of a grid.
    pub fn grid(&mut self, [(x1, y1), (x2, y2)]: [(f64, f64); 2]) {
        self.add(format_args!(
            "<path d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\" stroke=\"var(--line)\" stroke-width=\"0.8\"/>"
        ));
    }

    /// A line through points.
    pub fn line(&mut self, points: &[(f64, f64)], colour: &str, dashed: bool) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let dash = if dashed { " stroke-dasharray=\"5 4\"" } else { "" };
        self.add(format_args!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"var(--{colour})\" stroke-width=\"1.8\"{dash}/>",
            points.join(" ")
        ));
    }

    /// A dot, or a ring where it is not full, with a text that shows under the pointer.
    pub fn dot(&mut self, (x, y): (f64, f64), colour: &str, full: bool, text: &str) {
        // A ring shows around a dot in its place.
        let (fill, radius) = if full { (format!("var(--{colour})"), 4.5) } else { ("none".into(), 7.5) };
        let text = escape(text);
        self.add(format_args!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{fill}\" stroke=\"var(--{colour})\" \
             stroke-width=\"2\" pointer-events=\"all\"><title>{text}</title></circle>"
        ));
    }

    /// The element, to stand in a page.
    fn text(&self, name: &str) -> String {
        let Svg { width, height, body, fits } = self;
        let size = match fits {
            true => format!("class=\"fit\" style=\"max-width:{:.0}px\"", width * ENLARGED),
            false => format!("width=\"{width:.0}\" height=\"{height:.0}\""),
        };
        format!("<svg {size} viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\"><title>{name}</title>\n{body}</svg>")
    }

    /// The picture as a file of its own, which a narrow window shows smaller.
    pub fn file(&self, name: &str) -> String {
        let Svg { width, height, body, .. } = self;
        let name = escape(name);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0}\" height=\"{:.0}\" viewBox=\"0 0 {width:.0} \
             {height:.0}\" style=\"max-width:100%;height:auto\" role=\"img\">\n<title>{name}</title>\n<style>{STYLE}</style>\n<rect \
             width=\"100%\" height=\"100%\" fill=\"var(--paper)\"/>\n{body}</svg>\n",
            width * ENLARGED,
            height * ENLARGED
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_users_are_escaped() {
        assert_eq!(escape("a<b> & \"c\" 'd'\u{1b}\n"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;\u{fffd}\n");
        let mut svg = Svg::new(10.0, 10.0);
        svg.words((0.0, 0.0), "start", "", "<script>");
        svg.dot((0.0, 0.0), "red", true, "</title>");
        let section = Section { id: "a", title: "A & B", body: figure(&svg, "</svg>", "<i>") };
        let page = page("<script>", "", &[section]);
        assert!(!page.contains("<script") && !page.contains("<i>") && page.contains("A &amp; B"), "{page}");
        assert_eq!((page.matches("</svg>").count(), page.matches("</title>").count()), (1, 3), "{page}");
    }
}
