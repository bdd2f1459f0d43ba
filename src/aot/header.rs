//! The C header: each function's parameters, its contract and its spec.

use crate::codegen::storage::SCRATCH_ALIGN;
use crate::layout::list;
use crate::results::RESULTS_VERSION;
use crate::spec::{Operand, Role, Spec};
use crate::target::Target;
use cranefold_ir::DType;
use std::fmt;

/// The contents of a header; displayed, it is the header's text.
pub struct Header<'a> {
    pub spec: &'a Spec,
    pub target: &'a Target,
    pub symbol: &'a str,
    pub scratch_bytes: u64,
    /// The functions of the C library that the object refers to.
    pub needs: &'a [String],
}

/// The most characters of a line of a paragraph.
const LINE: usize = 100;

/// The C type of an element; floats of 16 bits are integers of 16 bits.
fn c_type(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool | DType::U8 => "uint8_t",
        DType::I8 => "int8_t",
        DType::I16 => "int16_t",
        DType::U16 | DType::F16 | DType::Bf16 => "uint16_t",
        DType::I32 => "int32_t",
        DType::U32 => "uint32_t",
        DType::I64 => "int64_t",
        DType::U64 => "uint64_t",
        DType::F32 => "float",
        DType::F64 => "double",
    }
}

/// A parameter that is an operand.
struct Parameter<'a> {
    /// The parameter's name: an input's name in expressions of specs, with `scalar_` before it if it is one value;
    /// `out0` and so on for outputs.
    name: String,
    operand: &'a Operand,
    is_output: bool,
    /// True if the operand's elements are read before they are written.
    is_read: bool,
    /// True if another operand may be the same memory.
    is_shared: bool,
}

impl Parameter<'_> {
    fn declaration(&self) -> String {
        let (constant, dtype) = (if self.is_output { "" } else { "const " }, c_type(self.operand.dtype()));
        let restrict = if self.is_shared { "" } else { "CRANEFOLD_RESTRICT " };
        format!("{constant}{dtype} *{restrict}{}", self.name)
    }

    /// The comment's line about the parameter.
    fn line(&self) -> String {
        let operand = self.operand;
        let role = match (self.is_output, self.is_read) {
            (false, _) => "input",
            (true, false) => "output",
            (true, true) => "output, read before",
        };
        let layout = match operand.layout() {
            layout if layout.is_row_major() => String::new(),
            layout => format!("@{layout}"),
        };
        let (elems, bytes) = (operand.span_elems(), operand.span_bytes());
        let word = if elems == 1 { "element" } else { "elements" };
        let held = match operand.dtype() {
            DType::Bool => "; one byte each, other than 0 is true, 0 and 1 are written",
            DType::F16 | DType::Bf16 => "; each as its bits",
            _ => "",
        };
        let shape = list(operand.shape(), '[', ']');
        format!("{role}, {}{shape}{layout}: {elems} {word}, {bytes} bytes{held}", operand.dtype())
    }
}

impl<'a> Header<'a> {
    fn parameters(&self) -> Vec<Parameter<'a>> {
        let (mut elements, mut thens) = (0.., 0..);
        let number = |of: &mut std::ops::RangeFrom<u32>| of.next().expect("fewer than 2^32 operands");
        let (inputs, outputs) = (self.spec.inputs(), self.spec.outputs());
        let may = |output, input| self.spec.may_replace(output, input);
        let mut parameters = vec![];
        for (n, operand) in inputs.iter().enumerate() {
            let name = match operand.role() {
                Role::Scalar(name) => format!("scalar_{name}"),
                Role::Then => format!("y{}", number(&mut thens)),
                Role::Element | Role::Output => format!("x{}", number(&mut elements)),
            };
            let is_shared = (0..outputs.len()).any(|output| may(output, n));
            parameters.push(Parameter { name, operand, is_output: false, is_read: true, is_shared });
        }
        for (n, operand) in outputs.iter().enumerate() {
            parameters.push(Parameter {
                name: format!("out{n}"),
                operand,
                is_output: true,
                is_read: self.spec.reads_old(n),
                is_shared: (0..inputs.len()).any(|input| may(n, input)),
            });
        }
        parameters
    }

    /// The sentence about the buffers that outputs may overlap.
    fn overlaps(&self, parameters: &[Parameter]) -> String {
        let (inputs, outputs) = parameters.split_at(self.spec.inputs().len());
        let mut may_be = vec![];
        for (output, parameter) in outputs.iter().enumerate() {
            let replaced = (0..inputs.len()).filter(|&input| self.spec.may_replace(output, input));
            let names: Vec<&str> = replaced.map(|input| inputs[input].name.as_str()).collect();
            if !names.is_empty() {
                may_be.push(format!("{} may be {} itself", parameter.name, names.join(" or ")));
            }
        }
        match may_be.is_empty() {
            true => "Outputs overlap no other buffer.".to_string(),
            false => {
                format!("Outputs overlap no other buffer, but {}, whose place it then takes.", may_be.join(", and "))
            }
        }
    }

    /// The conditions that hold for all calls.
    fn contract(&self, parameters: &[Parameter]) -> Vec<String> {
        let overlaps = self.overlaps(parameters);
        let mut buffers = vec![
            "Pointers are aligned as their types are, which is all that is needed; one to 0 elements may be null.",
            "Inputs are only read, and may overlap one another.",
            &overlaps,
        ];
        let places = |p: &Parameter| p.operand.placement().padded.iter().product::<u64>();
        if parameters.iter().any(|p| p.is_output && p.operand.elems() < places(p)) {
            buffers.push("The padding of blocks is written as zeros.");
        }
        if parameters.iter().any(|p| p.is_output && places(p) < p.operand.span_elems()) {
            buffers.push("What else lies between the elements of an output stays as it is.");
        }
        let mut about = vec![
            "The bits of the outputs depend on the reduction and on the elements of the inputs alone: objects for other \
             machines, features and vectors give the same. NaNs are the positive quiet one."
                .to_string(),
            buffers.join(" "),
        ];
        if self.scratch_bytes > 0 {
            about.push(format!(
                "scratch is memory that the call works in, aligned to {SCRATCH_ALIGN} bytes; what it holds before does not \
                 matter. Calls at the same time have one each."
            ));
        }
        about.push(
            "Any threads may call it at once. It assumes the default floating-point environment: rounding to nearest, \
             subnormals kept. It allocates nothing and cannot fail."
                .into(),
        );
        if !self.needs.is_empty() {
            let called: Vec<String> = self.needs.iter().map(|name| format!("{name}()")).collect();
            about.push(format!("It calls {} of the C library: link with -lm.", called.join(" and ")));
        }
        about
    }
}

/// Writes the text as comment lines, broken between words.
fn paragraph(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.is_empty() && line.len() + 1 + word.len() > LINE {
            writeln!(f, " * {line}")?;
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    writeln!(f, " * {line}")
}

/// The contents of the header of several functions; displayed, it is the header's text.
pub struct Several<'a> {
    /// The name of which the guard is made.
    pub name: &'a str,
    pub about: &'a str,
    pub target: &'a Target,
    /// Each function, and a sentence about it.
    pub functions: Vec<(Header<'a>, &'a str)>,
}

/// The lines that say who made the header and for which target.
fn made(f: &mut fmt::Formatter<'_>, target: &Target) -> fmt::Result {
    let features = match target.features() {
        features if features.is_empty() => "with no features beyond the least".into(),
        features => format!("with {}", features.join(" ")),
    };
    let (made, triple) = (env!("CARGO_PKG_VERSION"), target.triple());
    paragraph(
        f,
        &format!("Made by cranefold {made}, version {RESULTS_VERSION} of the results, for {triple} {features}."),
    )
}

/// The lines between the first comment and the functions.
fn open(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    let name = name.to_uppercase();
    writeln!(f, " */\n#ifndef {name}_H\n#define {name}_H\n\n#include <stdint.h>\n")?;
    writeln!(f, "#ifdef __cplusplus\n#define CRANEFOLD_RESTRICT __restrict\nextern \"C\" {{")?;
    writeln!(f, "#else\n#define CRANEFOLD_RESTRICT restrict\n#endif\n")
}

/// The lines after the functions.
fn close(f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(f, "#undef CRANEFOLD_RESTRICT\n#ifdef __cplusplus\n}}\n#endif\n\n#endif")
}

/// A text inside of a comment, which `*/` would end. No expression of a spec has `*` and `/` side by side.
fn commented(text: &str) -> String {
    text.replace("*/", "* /")
}

impl Header<'_> {
    /// The sizes, the contract and the declaration.
    fn function(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (symbol, prefix) = (self.symbol, self.symbol.to_uppercase());
        let parameters = self.parameters();
        writeln!(f, "/* Elements of each buffer, and bytes of scratch memory. */")?;
        for p in &parameters {
            writeln!(f, "#define {prefix}_{}_ELEMS {}", p.name.to_uppercase(), p.operand.span_elems())?;
        }
        writeln!(f, "#define {prefix}_SCRATCH_BYTES {}\n", self.scratch_bytes)?;

        let scratch = (self.scratch_bytes > 0).then_some("scratch");
        let widest = parameters.iter().map(|p| p.name.as_str()).chain(scratch).map(str::len).max().unwrap_or(0);
        writeln!(f, "/*")?;
        for p in &parameters {
            writeln!(f, " * {:widest$}  {}", p.name, p.line())?;
        }
        if scratch.is_some() {
            writeln!(f, " * {:widest$}  {} bytes", "scratch", self.scratch_bytes)?;
        }
        for text in self.contract(&parameters) {
            writeln!(f, " *")?;
            paragraph(f, &text)?;
        }
        writeln!(f, " */")?;
        let declared = parameters.iter().map(Parameter::declaration);
        let declared = declared.chain(scratch.map(|name| format!("void *CRANEFOLD_RESTRICT {name}")));
        let list: Vec<String> = declared.collect();
        let line = format!("void {symbol}({});", list.join(", "));
        match line.len() > LINE + " * ".len() {
            true => writeln!(f, "void {symbol}(\n    {});\n", list.join(",\n    ")),
            false => writeln!(f, "{line}\n"),
        }
    }
}

impl fmt::Display for Header<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "/*\n * {}\n *", commented(&self.spec.to_string()))?;
        made(f, self.target)?;
        open(f, self.symbol)?;
        self.function(f)?;
        close(f)
    }
}

impl fmt::Display for Several<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "/*")?;
        paragraph(f, &commented(self.about))?;
        writeln!(f, " *")?;
        made(f, self.target)?;
        open(f, self.name)?;
        for (function, about) in &self.functions {
            writeln!(f, "/*\n * {}", commented(&function.spec.to_string()))?;
            if !about.is_empty() {
                writeln!(f, " *")?;
                paragraph(f, &commented(about))?;
            }
            writeln!(f, " */\n")?;
            function.function(f)?;
        }
        close(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(spec: &str, scratch_bytes: u64, needs: &[String]) -> String {
        let target = Target::elsewhere("s390x-unknown-linux-gnu", "").expect("a target");
        let spec = spec.parse().expect("a spec");
        Header { spec: &spec, target: &target, symbol: "f", scratch_bytes, needs }.to_string()
    }

    #[test]
    fn scratch_memory_is_the_last_parameter() {
        let with = header("sum f32[2,3] axes=[1]", 128, &[]);
        assert!(with.contains("#define F_SCRATCH_BYTES 128\n") && with.contains("\n * scratch  128 bytes\n"), "{with}");
        let declared = "void f(\n    const float *CRANEFOLD_RESTRICT x0,\n    float *CRANEFOLD_RESTRICT out0,\n    \
                        void *CRANEFOLD_RESTRICT scratch);\n";
        assert!(with.contains(declared), "{with}");
        let without = header("sum f32[2,3] axes=[1]", 0, &[]);
        assert!(without.contains("#define F_SCRATCH_BYTES 0\n") && !without.contains("scratch)"), "{without}");
    }

    #[test]
    fn parameters_are_named_as_in_expressions() {
        let spec = "sum f16[2,3], bool[3], f64[2]:then axes=[1] scalar int:u8 map=\"f32(x0) * f32(x1)\" \
                    then=\"f64(r0) + y0 + f64(int) + f64(d)\"";
        let header = header(spec, 0, &["fma".into()]);
        for declared in [
            "const uint16_t *CRANEFOLD_RESTRICT x0",
            "const uint8_t *CRANEFOLD_RESTRICT x1",
            "const double *CRANEFOLD_RESTRICT y0",
            "const uint8_t *CRANEFOLD_RESTRICT scalar_int",
        ] {
            assert!(header.contains(declared), "{declared}: {header}");
        }
        assert!(header.contains("\n * out0        output, read before, "), "{header}");
        assert!(header.contains("It calls fma() of the C library: link with -lm."), "{header}");
    }

    #[test]
    fn outputs_whose_old_elements_a_region_reads_are_said_to_be_read() {
        let header = header("region x:f32[4,6] axes=[1] { max(x), sum(x) + old(0) }", 0, &[]);
        assert!(header.contains(" * out0  output, read before, f32[4]"), "{header}");
        assert!(header.contains(" * out1  output, f32[4]"), "{header}");
    }

    #[test]
    fn what_may_be_one_memory_is_not_restricted() {
        let header = header("layer_norm(eps=1e-5) f32[6,96], f32[96], f32[96] axes=[1]", 0, &[]);
        assert!(header.contains("const float *x0,") && header.contains("float *out0"), "{header}");
        assert!(header.contains("const float *CRANEFOLD_RESTRICT x1"), "{header}");
        let said = "Outputs overlap no other buffer, but out0 may be x0 itself, whose place it then takes.";
        assert!(header.replace("\n * ", " ").contains(said), "{header}");
    }

    #[test]
    fn each_output_of_a_region_may_be_an_input_in_its_place() {
        let region = "region x:f32[4,6], h:f32[4,6], w:f32[6] axes=[1] { y = x + h; y * w, max(y), y @ba, f16(y), y }";
        let header = header(region, 0, &[]);
        let said = "out0 may be x0 or x1 itself, and out4 may be x0 or x1 itself, whose place it then takes.";
        assert!(header.replace("\n * ", " ").contains(said), "{header}");
        for declared in ["const float *x0", "const float *x1", "float *out0", "float *out4"] {
            assert!(header.contains(&format!("{declared},")) || header.contains(&format!("{declared})")), "{header}");
        }
        for declared in ["const float *CRANEFOLD_RESTRICT x2", "float *CRANEFOLD_RESTRICT out1"] {
            assert!(header.contains(declared), "{header}");
        }
    }
}
