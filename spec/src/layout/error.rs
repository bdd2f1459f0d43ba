//! The errors of layouts.

/// A layout that cannot be, or does not fit its shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages define the variants and their fields")]
pub enum LayoutError {
    #[error("layout tag `{tag}` is neither one of each of the letters from `a` on nor a name such as `nchw`")]
    BadTag { tag: String },
    #[error("layout tag `{tag}` blocks axis `{axis}`, whose letter must be a capital")]
    BlockedSmall { tag: String, axis: char },
    #[error("layout tag `{tag}` has the capital `{axis}` but no block of that axis")]
    CapitalPlain { tag: String, axis: char },
    #[error("blocks `{blocks}` are not sizes with a small letter after each, such as `16b`")]
    BadBlocks { blocks: String },
    #[error("a block of {size} elements: blocks have from 2 to {limit}")]
    BlockSize { size: String, limit: u64 },
    #[error("layout tag `{tag}`{named} names {given} axes for rank {rank}")]
    TagRank { tag: String, named: String, given: usize, rank: usize },
    #[error("block `{block}` is of an axis that is out of range for rank {rank}")]
    BlockAxis { block: String, rank: usize },
    #[error("{given} strides for rank {rank}")]
    StridesRank { given: usize, rank: usize },
    #[error("layout `any` is the layout of input 0, kept by an output, and of nothing else")]
    AnyOfInput,
    #[error("shape {shape} of {element_bytes}-byte elements is larger than {limit} bytes")]
    TooLarge { shape: String, element_bytes: u64, limit: u64 },
    #[error("layout {layout} over shape {shape} of {element_bytes}-byte elements spans more than {limit} bytes")]
    SpanTooLarge { layout: String, shape: String, element_bytes: u64, limit: u64 },
    #[error("stride 0 of axis {axis} would write one element {extent} times")]
    ZeroStride { axis: usize, extent: u64 },
    #[error(
        "stride {stride} of axis {axis} may write one element twice: it must reach over the {span} elements \
         that the smaller strides span"
    )]
    Overlap { axis: usize, stride: i64, span: u64 },
}
