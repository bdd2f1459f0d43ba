//! The C program that runs the kernels.
//!
//! It reads all buffers of each call from a file, inputs before outputs, and writes the outputs to another. Each buffer
//! stands between guards, aligned as its type is and no better; the guards and the inputs must be as they were.

use cranefold::Spec;
use cranefold::spec::Role;

/// An object that is linked.
pub struct Kernel {
    pub header: String,
    pub symbol: String,
    pub has_scratch: bool,
    pub spec: Spec,
}

impl Kernel {
    /// The operands by their names in the header: inputs, then outputs.
    fn names(&self) -> Vec<String> {
        let (mut x, mut y) = (0.., 0..);
        let mut name = |role: &Role| match role {
            Role::Scalar(name) => format!("scalar_{name}"),
            Role::Then => format!("y{}", y.next().expect("a number")),
            _ => format!("x{}", x.next().expect("a number")),
        };
        let inputs: Vec<String> = self.spec.inputs().iter().map(|o| name(o.role())).collect();
        inputs.into_iter().chain((0..self.spec.outputs().len()).map(|n| format!("out{n}"))).collect()
    }

    /// A function that takes an array of buffers, and the row of the table.
    fn code(&self, number: usize) -> (String, String) {
        let prefix = self.symbol.to_uppercase();
        let names = self.names();
        let mut arguments: Vec<String> = (0..names.len()).map(|n| format!("(void *)b[{n}]")).collect();
        if self.has_scratch {
            arguments.push("scratch".into());
        }
        let call = format!(
            "static void call{number}(unsigned char **b, void *scratch) {{ (void)scratch; {}({}); }}\n",
            self.symbol,
            arguments.join(", ")
        );
        let operands = self.spec.inputs().iter().chain(self.spec.outputs());
        let sizes: Vec<String> = operands
            .zip(&names)
            .map(|(o, name)| format!("{{{prefix}_{}_ELEMS, {}}}", name.to_uppercase(), o.dtype().bytes()))
            .collect();
        let (inputs, outputs) = (self.spec.inputs().len(), self.spec.outputs().len());
        let row = format!(
            "  {{\"{}\", call{number}, {inputs}, {outputs}, {{{}}}, {prefix}_SCRATCH_BYTES}},\n",
            self.symbol,
            sizes.join(", ")
        );
        (call, row)
    }
}

/// The program that calls each kernel so many times.
pub fn program(kernels: &[Kernel], rounds: usize) -> String {
    let includes: String = kernels.iter().map(|k| format!("#include \"{}\"\n", k.header)).collect();
    let (calls, rows): (String, String) = kernels.iter().enumerate().map(|(n, k)| k.code(n)).unzip();
    format!("{includes}{HEAD}{calls}\nstatic const struct kernel kernels[] = {{\n{rows}}};\n{}", main(rounds))
}

const HEAD: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUARD 64
#define MOST 8

struct kernel {
  const char *name;
  void (*call)(unsigned char **, void *);
  size_t inputs, outputs;
  struct { size_t elems, element_bytes; } of[MOST];
  size_t scratch_bytes;
};

static void die(const char *kernel, const char *what) {
  fprintf(stderr, "%s: %s\n", kernel, what);
  exit(1);
}

/* Zeroed memory that is aligned to 64 bytes, and never given back. */
static unsigned char *memory(size_t bytes) {
  unsigned char *all = calloc(bytes + 64, 1);
  if (!all) die("driver", "no memory");
  return all + (64 - (size_t)all % 64);
}

"#;

fn main(rounds: usize) -> String {
    format!("\nstatic const size_t rounds = {rounds};\n{MAIN}")
}

const MAIN: &str = r#"
static void run(const struct kernel *k, size_t round, FILE *in, FILE *out) {
  unsigned char *b[MOST], *before[MOST];
  size_t bytes[MOST], all = k->inputs + k->outputs;
  for (size_t n = 0; n < all; n++) {
    size_t size = k->of[n].element_bytes;
    bytes[n] = k->of[n].elems * size;
    b[n] = memory(bytes[n] + 3 * GUARD) + GUARD + (round + n) % 4 * size;
    memset(b[n] - GUARD, 0xa5, bytes[n] + 2 * GUARD);
    if (fread(b[n], 1, bytes[n], in) != bytes[n]) die(k->name, "too little data");
    before[n] = memory(bytes[n] + 2 * GUARD);
    memcpy(before[n], b[n] - GUARD, bytes[n] + 2 * GUARD);
  }
  k->call(b, memory(k->scratch_bytes));
  for (size_t n = 0; n < all; n++) {
    const unsigned char *now = b[n] - GUARD;
    if (memcmp(now, before[n], GUARD)) die(k->name, "wrote before a buffer");
    if (memcmp(now + GUARD + bytes[n], before[n] + GUARD + bytes[n], GUARD)) die(k->name, "wrote after a buffer");
    if (n < k->inputs && memcmp(now, before[n], GUARD + bytes[n])) die(k->name, "wrote an input");
    if (n >= k->inputs && fwrite(b[n], 1, bytes[n], out) != bytes[n]) die(k->name, "cannot write");
  }
}

int main(int count, char **files) {
  FILE *in = count == 3 ? fopen(files[1], "rb") : NULL, *out = count == 3 ? fopen(files[2], "wb") : NULL;
  if (!in || !out) die("driver", "needs an input and an output file");
  for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
    for (size_t round = 0; round < rounds; round++) run(&kernels[k], round, in, out);
  }
  return fclose(out) != 0;
}
"#;
