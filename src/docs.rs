//! The pages of the folder `docs/`, rendered and tested as modules.

/// Declares a module for each page; links between pages become links between modules.
macro_rules! pages {
    ($($name:ident $file:literal;)*) => {$(
        #[doc = "[specs]: self::specs"]
        #[doc = "[shell]: self::shell"]
        #[doc = "[layouts]: self::layouts"]
        #[doc = "[expressions-and-combiners]: self::expressions_and_combiners"]
        #[doc = "[regions]: self::regions"]
        #[doc = "[models]: self::models"]
        #[doc = "[results]: self::results"]
        #[doc = "[threads-and-cache]: self::threads_and_cache"]
        #[doc = "[python]: self::python"]
        #[doc = "[python-speed]: self::python_speed"]
        #[doc = "[partial-results]: self::partial_results"]
        #[doc = "[distributed]: self::distributed"]
        #[doc = "[c]: self::c"]
        #[doc = "[ahead-of-time]: self::ahead_of_time"]
        #[doc = "[wide-vectors]: self::wide_vectors"]
        #[doc = "[reading-a-dump]: self::reading_a_dump"]
        #[doc = "[speed]: self::speed"]
        #[doc = "[reliability]: self::reliability"]
        #[doc = "[internals]: self::internals"]
        #[doc = "[words]: self::words"]
        #[doc = ""]
        #[doc = include_str!("../docs/pictures/rustdoc.md")]
        #[doc = ""]
        #[doc = include_str!(concat!("../docs/", $file))]
        pub mod $name {}
    )*};
}

pages! {
    specs "specs.md";
    shell "shell.md";
    layouts "layouts.md";
    expressions_and_combiners "expressions-and-combiners.md";
    regions "regions.md";
    models "models.md";
    results "results.md";
    threads_and_cache "threads-and-cache.md";
    python "python.md";
    python_speed "python-speed.md";
    partial_results "partial-results.md";
    distributed "distributed.md";
    c "c.md";
    ahead_of_time "ahead-of-time.md";
    wide_vectors "wide-vectors.md";
    reading_a_dump "reading-a-dump.md";
    speed "speed.md";
    reliability "reliability.md";
    internals "internals.md";
    words "words.md";
}
