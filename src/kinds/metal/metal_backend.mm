// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
//
// Everything that touches Apple's API. Manual retain and release, without blocks, generics or literals: Apple's clang
// compiles it with -fno-objc-arc, and so does any Objective-C++ compiler that has the headers.
#import <Foundation/Foundation.h>
#import <Metal/Metal.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include "carrier/version.hpp"
#include "kinds/metal/module.hpp"

#if defined(__has_feature)
#if __has_feature(objc_arc)
#error "metal_backend.mm retains and releases by hand: compile it with -fno-objc-arc"
#endif
#endif

namespace carrier::metal {
namespace {

constexpr const char kSource[] =
#include "metal_source.inc"  // kernels/scatter.metal as a string literal
    ;

/// Unwinds to the entry point, never beyond it.
struct Failure {
    Status status;
};

/// Owns one reference.
template <class T>
class Handle {
  public:
    Handle() = default;
    explicit Handle(T adopted) : object_(adopted) {}
    Handle(Handle&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    Handle& operator=(Handle&& other) noexcept {
        std::swap(object_, other.object_);
        return *this;
    }
    ~Handle() { [object_ release]; }
    T get() const { return object_; }
    explicit operator bool() const { return object_ != nullptr; }

  private:
    T object_ = nullptr;
};

/// Neither C++ threads nor Python's have an autorelease pool of their own.
class Pool {
  public:
    Pool() : pool_([[NSAutoreleasePool alloc] init]) {}
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;
    ~Pool() { [pool_ drain]; }

  private:
    NSAutoreleasePool* pool_;
};

std::string text_of(NSString* string) {
    const char* utf8 = [string UTF8String];
    return utf8 != nullptr ? std::string(utf8) : std::string();
}

[[noreturn]] void fail(Fault fault, std::string what, NSError* error = nullptr) {
    const std::string detail = text_of([error localizedDescription]);
    if (!detail.empty()) what += ": " + detail;
    throw Failure{{fault, std::move(what)}};
}

/// Runs an entry point inside a pool; errors are copied out before it drains.
template <class Body>
Status reported(Body body) noexcept {
    try {
        const Pool pool;
        body();
        return {};
    } catch (Failure& failure) {
        return std::move(failure.status);
    } catch (const std::bad_alloc&) {
        return {Fault::no_memory, "host"};
    }
}

class SharedBuffer final : public Buffer {
  public:
    explicit SharedBuffer(Handle<id<MTLBuffer> > handle) : handle_(std::move(handle)) {}
    std::byte* data() noexcept override { return static_cast<std::byte*>([handle_.get() contents]); }
    id<MTLBuffer> handle() const { return handle_.get(); }

  private:
    Handle<id<MTLBuffer> > handle_;
};

id<MTLBuffer> handle_of(Buffer& buffer) { return static_cast<SharedBuffer&>(buffer).handle(); }

class SharedDevice final : public Device {
  public:
    SharedDevice(Handle<id<MTLDevice> > device, Handle<id<MTLCommandQueue> > queue)
        : device_(std::move(device)), queue_(std::move(queue)) {}

    Status allocate(std::size_t bytes, std::unique_ptr<Buffer>& into) noexcept override {
        return reported([&] {
            const NSUInteger limit = [device_.get() maxBufferLength];
            if (bytes > limit) fail(Fault::too_large, std::to_string(limit));
            Handle<id<MTLBuffer> > handle([device_.get() newBufferWithLength:bytes
                                                                     options:MTLResourceStorageModeShared]);
            if (!handle || [handle.get() contents] == nullptr) fail(Fault::no_memory, "device");
            into = std::make_unique<SharedBuffer>(std::move(handle));
        });
    }

    Status scatter(Buffer& onto, Buffer& values, Buffer& slots, std::uint32_t count,
                   std::size_t width) noexcept override {
        return reported([&] {
            id<MTLComputePipelineState> state = pipeline(width);
            id<MTLCommandBuffer> commands = [queue_.get() commandBuffer];
            id<MTLComputeCommandEncoder> encoder = [commands computeCommandEncoder];
            if (encoder == nullptr) fail(Fault::not_executed, "no compute encoder was given");
            // Until endEncoding nothing may throw: Metal aborts the process when an encoder is dropped open.
            [encoder setComputePipelineState:state];
            [encoder setBuffer:handle_of(onto) offset:0 atIndex:0];
            [encoder setBuffer:handle_of(values) offset:0 atIndex:1];
            [encoder setBuffer:handle_of(slots) offset:0 atIndex:2];
            [encoder setBytes:&count length:sizeof count atIndex:3];
            const NSUInteger group = std::min<NSUInteger>([state maxTotalThreadsPerThreadgroup], 256);
            const NSUInteger groups = (static_cast<NSUInteger>(count) + group - 1) / group;
            [encoder dispatchThreadgroups:MTLSizeMake(groups, 1, 1)
                    threadsPerThreadgroup:MTLSizeMake(group, 1, 1)];
            [encoder endEncoding];
            [commands commit];
            [commands waitUntilCompleted];
            if ([commands status] != MTLCommandBufferStatusCompleted)
                fail(Fault::not_executed, "the command buffer ended with an error", [commands error]);
        });
    }

  private:
    id<MTLComputePipelineState> pipeline(std::size_t width) {
        const std::lock_guard<std::mutex> lock(mutex_);
        Handle<id<MTLComputePipelineState> >& ready = width == 1 ? bytes_ : words_;
        if (ready) return ready.get();
        NSError* error = nullptr;
        Handle<id<MTLLibrary> > library([device_.get()
            newLibraryWithSource:[NSString stringWithUTF8String:kSource]
                         options:nullptr
                           error:&error]);
        if (!library) fail(Fault::kernel, "the scatter kernel did not compile", error);
        const char* name = width == 1 ? "scatter_bytes" : "scatter_words";
        Handle<id<MTLFunction> > function([library.get()
            newFunctionWithName:[NSString stringWithUTF8String:name]]);
        if (!function) fail(Fault::kernel, std::string("the compiled library has no function ") + name);
        error = nullptr;
        Handle<id<MTLComputePipelineState> > made([device_.get()
            newComputePipelineStateWithFunction:function.get()
                                          error:&error]);
        if (!made) fail(Fault::kernel, std::string("no pipeline for ") + name, error);
        ready = std::move(made);
        return ready.get();
    }

    Handle<id<MTLDevice> > device_;
    Handle<id<MTLCommandQueue> > queue_;
    std::mutex mutex_;
    Handle<id<MTLComputePipelineState> > bytes_, words_;
};

/// Shared storage is memory that the GPU uses in place, which takes unified memory. The default device comes
/// first; outside a login session there may be none though the machine has a GPU, and it may be a discrete
/// one, so the others are looked at too.
Handle<id<MTLDevice> > find_device() {
    Handle<id<MTLDevice> > usual(MTLCreateSystemDefaultDevice());
    if (usual && [usual.get() hasUnifiedMemory]) return usual;
    std::string discrete = text_of([usual.get() name]);
    const Handle<NSArray*> all(MTLCopyAllDevices());
    for (NSUInteger i = 0; i < [all.get() count]; ++i) {
        id<MTLDevice> each = [all.get() objectAtIndex:i];
        if ([each hasUnifiedMemory]) return Handle<id<MTLDevice> >([each retain]);
        if (discrete.empty()) discrete = text_of([each name]);
    }
    if (discrete.empty()) fail(Fault::no_device, "");
    fail(Fault::discrete, discrete);
}

Status open(std::unique_ptr<Device>& into) noexcept {
    return reported([&] {
        Handle<id<MTLDevice> > device = find_device();
        Handle<id<MTLCommandQueue> > queue([device.get() newCommandQueue]);
        if (!queue) fail(Fault::no_queue, text_of([device.get() name]));
        into = std::make_unique<SharedDevice>(std::move(device), std::move(queue));
    });
}

}  // namespace
}  // namespace carrier::metal

const carrier::metal::Module carrier_metal_module = {CARRIER_VERSION, &carrier::metal::open};
