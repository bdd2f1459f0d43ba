// Every class of the C++ header, its work and its exceptions.
#include <cranefold.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                       \
            std::exit(1);                                                                                              \
        }                                                                                                              \
    } while (0)

// The code of the exception that a function throws.
template <class F> static std::int32_t thrown(F work, const char *text) {
    try {
        work();
    } catch (const cranefold::error &error) {
        CHECK(std::strstr(error.what(), text));
        return error.code();
    }
    return 0;
}

int main() {
    const char *width = std::getenv("CRANEFOLD_TEST_WIDTH");
    cranefold::options options;
    options.width = width ? static_cast<std::uint32_t>(std::atoi(width)) : 0;
    options.threads = 2;
    const cranefold::compiler compiler(options);
    CHECK(compiler.width() >= 64);
    CHECK(thrown([] { cranefold::compiler({.width = 3}); }, "width=3") == CRANEFOLD_ERROR_COMPILE);

    const std::vector<float> x = {1, 2, 3, 4, 5, 6};
    std::vector<float> sums(2), more(2);
    cranefold::kernel sum = compiler.compile("sum f32[2,3] axes=[1]");
    sum.run({{x.data(), {2, 3}}}, {{sums.data(), {2}}});
    CHECK(sums[0] == 6 && sums[1] == 15);
    sum.run({cranefold::tensor(std::span(x))}, {cranefold::tensor(std::span(more))});
    CHECK(more == sums);
    CHECK(thrown([&] { sum.run({{x.data(), {3, 2}}}, {{sums.data(), {2}}}); }, "has shape [3, 2]") == CRANEFOLD_ERROR_TENSOR);
    cranefold::kernel copy = sum, moved = std::move(sum);
    copy = moved;
    CHECK(copy.spec() == "sum f32[2,3] axes=[1]" && copy.inputs() == 1 && copy.outputs() == 1 && copy.parts() == 1);
    CHECK(copy.input(0).span_elems == 6 && copy.output(0).ndim == 1 && copy.run_scratch() == 0 && copy.call_scratch() == 0);
    CHECK(thrown([&] { (void)copy.input(1); }, "no input 1") == CRANEFOLD_ERROR_ARGUMENT);
    CHECK(copy.explain().find("moves") != std::string::npos && copy.dump("nest").rfind("nest \"", 0) == 0);
    void *pointers[] = {const_cast<float *>(x.data()), more.data()};
    more = {0, 0};
    copy.run_raw(pointers);
    CHECK(more == sums);
    more = {0, 0};
    copy.entry()(pointers);
    CHECK(more == sums);

    const std::string specs[] = {"max f32[8]", "region x:f32[2,2]@(1,2) axes=[1] scalar k:f32 { max(x) * k }", "maxx f32[8]"};
    const auto kernels = compiler.compile_many(std::span(specs, 2));
    CHECK(kernels.size() == 2 && compiler.statistics().kernels >= 3);
    try {
        (void)compiler.compile_many(specs);
        CHECK(!"refused");
    } catch (const cranefold::error &error) {
        CHECK(error.item() == 2 && error.place() == 0 && std::strstr(error.what(), "did you mean `max`?"));
    }
    const float k = 2;
    kernels[1].run({cranefold::tensor(const_cast<float *>(x.data()), cranefold::dtype_of<float>(), {2, 2}, {1, 2}), cranefold::tensor(k)},
                   {{sums.data(), {2}}});
    CHECK(sums[0] == 6 && sums[1] == 8);

    // Parts on threads.
    const std::vector<double> large(2000000, 0.5);
    double total = 0, whole = 0;
    const auto kernel = compiler.compile("sum f64[2000000]");
    kernel.run({cranefold::tensor(std::span(large))}, {cranefold::tensor(whole)});
    {
        const auto call = kernel.call({{large.data(), {2000000}}}, {cranefold::tensor(total)});
        std::vector<std::thread> threads;
        for (std::size_t part = 0; part < call.parts(); part++) threads.emplace_back([&call, part] { call.run(part); });
        for (auto &thread : threads) thread.join();
        CHECK(thrown([&] { call.run(0); }, "has been run before") == CRANEFOLD_ERROR_CALL);
        call.finish();
    }
    CHECK(total == 1e6 && whole == 1e6);
    std::vector<std::byte> scratch(kernel.run_scratch() + 64);
    const auto skip = (64 - reinterpret_cast<std::uintptr_t>(scratch.data()) % 64) % 64;
    total = 0;
    kernel.run_in({cranefold::tensor(std::span(large))}, {cranefold::tensor(total)}, std::span(scratch).subspan(skip));
    CHECK(total == 1e6);

    // Partial results.
    const auto partial = compiler.partial("mean f64[2000000]");
    auto all = partial.identity();
    for (const auto &[first, end] : partial.ranges(3)) {
        const auto shard = partial.shard(first, end);
        const auto span = shard.input(0);
        CHECK(shard.inputs() == 1 && span.end <= large.size());
        std::vector<std::byte> state(partial.state_bytes());
        shard.run({cranefold::tensor(std::span(large).subspan(span.first, span.end - span.first))}, state);
        partial.combine(state, all);
    }
    CHECK(partial.blocks_of(all).second == partial.blocks() && partial.finish_inputs().empty());
    total = 0;
    partial.finish(all, {}, {cranefold::tensor(total)});
    CHECK(total == 0.5 && partial.dump().find("finish") != std::string::npos);
    CHECK(thrown([&] { partial.finish(partial.identity(), {}, {cranefold::tensor(total)}); }, "takes all") == CRANEFOLD_ERROR_STATE);

    // Chunks of columns 1 and 2 of an array, which end anywhere.
    std::vector<float> table(3 * 1000), chunk;
    for (std::size_t i = 0; i < table.size(); i++) table[i] = static_cast<float>(i) * 0.37f;
    float means[3], some[2];
    compiler.compile("mean f32[1000,3] axes=[0] order=logical").run({{table.data(), {1000, 3}}}, {{means, {3}}});
    const auto columns = compiler.partial_of("mean f32[1000,3] axes=[0] order=logical", {{1, 3}});
    CHECK(columns.axis() == 0);
    all = columns.identity();
    for (const auto &[first, end] : {std::pair{0, 1}, std::pair{1, 1}, std::pair{1, 700}, std::pair{700, 1000}}) {
        chunk.clear();
        for (int row = first; row < end; row++) chunk.insert(chunk.end(), {table[3 * row + 1], table[3 * row + 2]});
        const auto shard = columns.shard_of({{first, end}, {1, 3}});
        std::vector<std::byte> state(columns.state_bytes());
        shard.run({cranefold::tensor(std::span<const float>(chunk))}, state);
        const auto [from, to] = columns.range_of(state);
        CHECK(first == end || (from == std::uint64_t(first) && to == std::uint64_t(end)));
        CHECK(columns.used_bytes(state) == columns.range_bytes(first, end) && columns.used_bytes(state) <= state.size());
        columns.combine(state, all);
    }
    columns.finish(all, {}, {{some, {2}}});
    CHECK(some[0] == means[1] && some[1] == means[2]);
    CHECK(thrown([&] { static_cast<void>(columns.shard_of({{0, 1001}, {1, 3}})); }, "within the axis") == CRANEFOLD_ERROR_COMPILE);
    CHECK(thrown([&] { static_cast<void>(columns.shard_of({{0, 1}, {0, 3}})); }, "these partial results are of 1..3") ==
          CRANEFOLD_ERROR_COMPILE);
    CHECK(thrown([&] { static_cast<void>(partial.axis()); }, "order=logical") == CRANEFOLD_ERROR_COMPILE);
    CHECK(thrown([&] { static_cast<void>(compiler.partial_of("sum f32[4]", {})); }, "order=logical") == CRANEFOLD_ERROR_COMPILE);

    compiler.clear();
    CHECK(compiler.statistics().kernels == 0);
    std::puts("C++: every class did its work");
    return 0;
}
