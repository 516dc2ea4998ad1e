// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
//
// A GPU of one host thread. It keeps Metal's rules about order and lifetime, and reports who breaks them; kernels run
// only while somebody waits for them, so that a forgotten wait is seen.
#import <Metal/Metal.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <utility>

#include "msl.hpp"
#include "private.h"

namespace standin {
namespace {

constexpr std::size_t kSlots = 31;       // of the buffer argument table
constexpr std::size_t kInline = 4096;    // setBytes: up to
constexpr std::size_t kMaxThreads = 1024;  // of one threadgroup
// No promise about the contents of a new buffer. Of a huge one only both ends are spoiled.
constexpr unsigned char kSpoil = 0xA5;
constexpr std::size_t kSpoiled = std::size_t{64} << 20;

struct Dispatch {
    std::shared_ptr<Program> program;
    const Kernel* kernel = nullptr;
    void* slots[kSlots] = {};
    std::vector<std::pair<std::size_t, std::vector<char> > > inlined;
    MTLSize threads{};
};

/// What an encoder was told, until the command buffer is waited for.
struct Recording {
    std::vector<Dispatch> dispatches;
    std::vector<id> retained;
    bool encoding = false, committed = false, done = false, failed = false;
    ~Recording() {
        for (id object : retained) [object release];
    }
};

bool run(Dispatch& dispatch) {
    const MTLSize& grid = dispatch.threads;
    const std::size_t total = grid.width * grid.height * grid.depth;
    std::vector<std::size_t> order;
    if (plan().order != Order::forward) {
        order.resize(total);
        std::iota(order.begin(), order.end(), std::size_t{0});
        if (plan().order == Order::reverse) std::reverse(order.begin(), order.end());
        else std::shuffle(order.begin(), order.end(), std::mt19937(7));
    }
    for (auto& [slot, bytes] : dispatch.inlined) dispatch.slots[slot] = bytes.data();
    const long stop = plan().stop_after_threads;
    const std::size_t until = stop < 0 ? total : std::min(total, static_cast<std::size_t>(stop));
    for (std::size_t k = 0; k < until; ++k) {
        const std::size_t t = order.empty() ? k : order[k];
        dispatch.kernel->entry(dispatch.slots, static_cast<unsigned>(t % grid.width),
                               static_cast<unsigned>(t / grid.width % grid.height),
                               static_cast<unsigned>(t / grid.width / grid.height));
    }
    add_threads(until);
    return stop < 0;
}

}  // namespace
}  // namespace standin

using namespace standin;

@interface StandinBuffer : NSObject <MTLBuffer> {
  @public
    void* bytes_;
    NSUInteger length_;
}
@end
@implementation StandinBuffer
- (NSUInteger)length {
    return length_;
}
- (void*)contents {
    return bytes_;
}
- (void)dealloc {
    free(bytes_);
    [super dealloc];
}
@end

@interface StandinLibrary : NSObject <MTLLibrary> {
  @public
    std::shared_ptr<Program>* program_;
}
@end
@interface StandinFunction : NSObject <MTLFunction> {
  @public
    std::shared_ptr<Program>* program_;
    const Kernel* kernel_;
}
@end
@interface StandinPipeline : NSObject <MTLComputePipelineState> {
  @public
    std::shared_ptr<Program>* program_;
    const Kernel* kernel_;
}
@end
@implementation StandinLibrary
- (id<MTLFunction>)newFunctionWithName:(NSString*)name {
    called("newFunctionWithName:");
    if (!plan().functions) return nil;
    for (const Kernel& kernel : (*program_)->kernels) {
        if (kernel.name != [name UTF8String]) continue;
        StandinFunction* function = [[StandinFunction alloc] init];
        function->program_ = new std::shared_ptr<Program>(*program_);
        function->kernel_ = &kernel;
        return function;
    }
    return nil;
}
- (void)dealloc {
    delete program_;
    [super dealloc];
}
@end
@implementation StandinFunction
- (NSString*)name {
    return [NSString stringWithUTF8String:kernel_->name.c_str()];
}
- (void)dealloc {
    delete program_;
    [super dealloc];
}
@end
@implementation StandinPipeline
- (NSUInteger)maxTotalThreadsPerThreadgroup {
    return kMaxThreads;
}
- (NSUInteger)threadExecutionWidth {
    return 32;
}
- (void)dealloc {
    delete program_;
    [super dealloc];
}
@end

@interface StandinEncoder : NSObject <MTLComputeCommandEncoder> {
  @public
    std::shared_ptr<Recording>* recording_;
    Dispatch* current_;
    bool ended_;
}
@end
@implementation StandinEncoder
- (bool)takes:(const char*)selector {
    called(selector);
    if (ended_) violation(std::string(selector) + " after endEncoding");
    return !ended_;
}
- (void)setComputePipelineState:(id<MTLComputePipelineState>)state {
    if (![self takes:"setComputePipelineState:"]) return;
    if (state == nil) return violation("setComputePipelineState: nil");
    StandinPipeline* pipeline = static_cast<StandinPipeline*>(state);
    current_->program = *pipeline->program_;
    current_->kernel = pipeline->kernel_;
}
- (void)setBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index {
    if (![self takes:"setBuffer:offset:atIndex:"]) return;
    if (index >= kSlots) return violation("setBuffer: index beyond the argument table");
    if (buffer == nil) {
        current_->slots[index] = nullptr;
        return;
    }
    if (offset >= [buffer length]) return violation("setBuffer: offset beyond the buffer");
    (*recording_)->retained.push_back([buffer retain]);
    current_->slots[index] = static_cast<char*>([buffer contents]) + offset;
}
- (void)setBytes:(const void*)bytes length:(NSUInteger)length atIndex:(NSUInteger)index {
    if (![self takes:"setBytes:length:atIndex:"]) return;
    if (length == 0 || length > kInline || index >= kSlots) return violation("setBytes: bad length or index");
    const char* first = static_cast<const char*>(bytes);
    current_->inlined.emplace_back(index, std::vector<char>(first, first + length));
    current_->slots[index] = current_->inlined.back().second.data();
}
- (void)recordThreads:(MTLSize)threads group:(MTLSize)group {
    const NSUInteger in_group = group.width * group.height * group.depth;
    if (current_->kernel == nullptr) return violation("dispatch without a pipeline");
    if (in_group == 0 || in_group > kMaxThreads) return violation("bad threadgroup size");
    if (threads.width * threads.height * threads.depth == 0) return violation("empty grid");
    for (std::size_t slot : current_->kernel->buffers)
        if (slot >= kSlots || current_->slots[slot] == nullptr)
            return violation(current_->kernel->name + ": buffer " + std::to_string(slot) + " is not bound");
    current_->threads = threads;
    (*recording_)->dispatches.push_back(*current_);
}
- (void)dispatchThreads:(MTLSize)threads threadsPerThreadgroup:(MTLSize)group {
    if (![self takes:"dispatchThreads:threadsPerThreadgroup:"]) return;
    if (!plan().non_uniform) return violation("dispatchThreads on a GPU without non-uniform threadgroups");
    [self recordThreads:threads group:group];
}
- (void)dispatchThreadgroups:(MTLSize)groups threadsPerThreadgroup:(MTLSize)group {
    if (![self takes:"dispatchThreadgroups:threadsPerThreadgroup:"]) return;
    [self recordThreads:MTLSizeMake(groups.width * group.width, groups.height * group.height,
                                    groups.depth * group.depth)
                  group:group];
}
- (void)endEncoding {
    if (![self takes:"endEncoding"]) return;
    ended_ = true;
    (*recording_)->encoding = false;
}
- (void)dealloc {
    if (!ended_) violation("command encoder released before endEncoding");
    delete current_;
    delete recording_;
    [super dealloc];
}
@end

@interface StandinCommandBuffer : NSObject <MTLCommandBuffer> {
  @public
    std::shared_ptr<Recording>* recording_;
}
@end
@implementation StandinCommandBuffer
- (id<MTLComputeCommandEncoder>)computeCommandEncoder {
    called("computeCommandEncoder");
    if (!plan().encoder) return nil;
    Recording& recording = **recording_;
    if (recording.encoding) violation("a second encoder before endEncoding");
    if (recording.committed) violation("computeCommandEncoder after commit");
    recording.encoding = true;
    StandinEncoder* encoder = [[StandinEncoder alloc] init];
    encoder->recording_ = new std::shared_ptr<Recording>(*recording_);
    encoder->current_ = new Dispatch;
    return [encoder autorelease];
}
- (void)commit {
    called("commit");
    Recording& recording = **recording_;
    if (recording.encoding) violation("commit before endEncoding");
    if (recording.committed) violation("commit twice");
    recording.committed = true;
}
- (void)waitUntilCompleted {
    called("waitUntilCompleted");
    Recording& recording = **recording_;
    if (!recording.committed) return violation("waitUntilCompleted before commit");
    if (recording.done) return;
    for (Dispatch& dispatch : recording.dispatches) {
        recording.failed = !run(dispatch);
        if (recording.failed) break;
    }
    recording.done = true;
}
- (MTLCommandBufferStatus)status {
    called("status");
    const Recording& recording = **recording_;
    if (!recording.committed) return MTLCommandBufferStatusNotEnqueued;
    if (!recording.done) return MTLCommandBufferStatusCommitted;
    return recording.failed ? MTLCommandBufferStatusError : MTLCommandBufferStatusCompleted;
}
- (NSError*)error {
    called("error");
    if (!(*recording_)->failed) return nil;
    return make_error("MTLCommandBufferErrorDomain", 2, "Caused GPU Timeout Error (arranged)");
}
- (void)dealloc {
    if ((*recording_)->committed && !(*recording_)->done) violation("committed, and nobody waited");
    delete recording_;
    [super dealloc];
}
@end

@interface StandinQueue : NSObject <MTLCommandQueue>
@end
@implementation StandinQueue
- (id<MTLCommandBuffer>)commandBuffer {
    called("commandBuffer");
    if (!plan().command_buffer) return nil;
    StandinCommandBuffer* buffer = [[StandinCommandBuffer alloc] init];
    buffer->recording_ = new std::shared_ptr<Recording>(std::make_shared<Recording>());
    return [buffer autorelease];
}
@end

@interface StandinDevice : NSObject <MTLDevice> {
  @public
    int number_;
}
@end
@implementation StandinDevice
- (NSString*)name {
    return [NSString stringWithUTF8String:"Stand-in GPU"];
}
- (BOOL)hasUnifiedMemory {
    return number_ >= plan().unified_from;
}
- (NSUInteger)maxBufferLength {
    return plan().max_buffer;
}
- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options {
    called("newBufferWithLength:options:");
    if (options != MTLResourceStorageModeShared) violation("storage that the host cannot read");
    if (length == 0 || length > plan().max_buffer) {
        violation("newBufferWithLength: " + std::to_string(length));
        return nil;
    }
    if (!take_allocation()) return nil;
    auto* bytes = static_cast<unsigned char*>(malloc(length));
    if (bytes == nullptr) return nil;
    const std::size_t ends = std::min<std::size_t>(length, kSpoiled);
    memset(bytes, kSpoil, ends);
    memset(bytes + length - ends, kSpoil, ends);
    StandinBuffer* buffer = [[StandinBuffer alloc] init];
    buffer->bytes_ = bytes;
    buffer->length_ = length;
    return buffer;
}
- (id<MTLCommandQueue>)newCommandQueue {
    called("newCommandQueue");
    if (!plan().queue) return nil;
    return [[StandinQueue alloc] init];
}
- (id<MTLLibrary>)newLibraryWithSource:(NSString*)source
                               options:(MTLCompileOptions*)options
                                 error:(NSError**)error {
    called("newLibraryWithSource:options:error:");
    (void)options;
    std::string diagnostics = "compiler service unavailable (arranged)";
    std::shared_ptr<Program> program;
    if (plan().compiler) program = compile([source UTF8String] + plan().source_suffix, diagnostics);
    if (!program) {
        if (error != nullptr) *error = make_error("MTLLibraryErrorDomain", 3, diagnostics);
        return nil;
    }
    StandinLibrary* library = [[StandinLibrary alloc] init];
    library->program_ = new std::shared_ptr<Program>(std::move(program));
    return library;
}
- (id<MTLComputePipelineState>)newComputePipelineStateWithFunction:(id<MTLFunction>)function
                                                             error:(NSError**)error {
    called("newComputePipelineStateWithFunction:error:");
    if (function == nil) {
        violation("newComputePipelineStateWithFunction: nil");
        return nil;
    }
    if (!plan().pipelines) {
        if (error != nullptr) *error = make_error("AGXMetal", 1, "pipeline refused (arranged)");
        return nil;
    }
    StandinFunction* from = static_cast<StandinFunction*>(function);
    StandinPipeline* pipeline = [[StandinPipeline alloc] init];
    pipeline->program_ = new std::shared_ptr<Program>(*from->program_);
    pipeline->kernel_ = from->kernel_;
    return pipeline;
}
@end

namespace {
StandinDevice* make_device(int number) {
    StandinDevice* device = [[StandinDevice alloc] init];
    device->number_ = number;
    return device;
}
}  // namespace

extern "C" {

id<MTLDevice> MTLCreateSystemDefaultDevice(void) {
    called("MTLCreateSystemDefaultDevice");
    return plan().devices > 0 && plan().default_device ? make_device(0) : nil;
}

NSArray* MTLCopyAllDevices(void) {
    called("MTLCopyAllDevices");
    std::vector<id> all;
    for (int i = 0; i < plan().devices; ++i) all.push_back(make_device(i));
    NSArray* array = make_array(all.data(), all.size());
    for (id device : all) [device release];
    return array;
}
}
