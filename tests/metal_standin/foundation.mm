// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
//
// Reference counts that notice a use after the last release, and pools that notice their absence.
#import <Foundation/Foundation.h>

#include <objc/runtime.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "private.h"

namespace {

thread_local std::vector<std::vector<id> > pools;

/// Dead objects are kept for a while, so that a message to one is reported and not undefined.
void bury(id object) {
    static std::mutex& mutex = *new std::mutex;
    static std::vector<id>& graves = *new std::vector<id>;
    static std::size_t next = 0;
    const std::lock_guard<std::mutex> lock(mutex);
    if (graves.size() < 4096) return graves.push_back(object);
    object_dispose(graves[next]);
    graves[next] = object;
    next = (next + 1) % graves.size();
}

}  // namespace

@implementation NSObject
+ (id)alloc {
    standin::born(class_getName(self));
    NSObject* made = class_createInstance(self, 0);
    made->references_ = 1;
    return made;
}
- (id)init {
    return self;
}
- (void)dealloc {
    standin::died(class_getName(object_getClass(self)));
    references_ = -1;
    bury(self);
}
- (id)retain {
    if (references_ <= 0) standin::violation("retain of a deallocated object");
    __atomic_add_fetch(&references_, 1, __ATOMIC_RELAXED);
    return self;
}
- (void)release {
    if (references_ <= 0) return standin::violation("release of a deallocated object");
    if (__atomic_sub_fetch(&references_, 1, __ATOMIC_ACQ_REL) == 0) [self dealloc];
}
- (id)autorelease {
    standin::autoreleased(self);
    return self;
}
- (NSUInteger)retainCount {
    return static_cast<NSUInteger>(references_);
}
@end

@implementation NSString
+ (NSString*)stringWithUTF8String:(const char*)utf8 {
    NSString* string = [[NSString alloc] init];
    string->utf8_ = strdup(utf8);
    return [string autorelease];
}
- (const char*)UTF8String {
    return utf8_;
}
- (void)dealloc {
    free(utf8_);
    utf8_ = nullptr;
    [super dealloc];
}
@end

@implementation NSError
- (id)initWithDomain:(const char*)domain code:(NSInteger)code text:(const char*)text {
    domain_ = [[NSString stringWithUTF8String:domain] retain];
    text_ = [[NSString stringWithUTF8String:text] retain];
    code_ = code;
    return self;
}
- (NSString*)domain {
    return domain_;
}
- (NSInteger)code {
    return code_;
}
- (NSString*)localizedDescription {
    return text_;
}
- (void)dealloc {
    [domain_ release];
    [text_ release];
    [super dealloc];
}
@end

@implementation NSArray
- (id)initWithObjects:(id*)items count:(NSUInteger)count {
    items_ = static_cast<id*>(calloc(count + 1, sizeof(id)));
    count_ = count;
    for (NSUInteger i = 0; i < count; ++i) items_[i] = [items[i] retain];
    return self;
}
- (NSUInteger)count {
    return count_;
}
- (id)objectAtIndex:(NSUInteger)index {
    if (index < count_) return items_[index];
    standin::violation("objectAtIndex: beyond the array");
    return nil;
}
- (void)dealloc {
    for (NSUInteger i = 0; i < count_; ++i) [items_[i] release];
    free(items_);
    [super dealloc];
}
@end

@implementation NSAutoreleasePool
- (id)init {
    pools.emplace_back();
    return self;
}
- (void)drain {
    // What dies may autorelease in turn: that goes into the same pool.
    while (!pools.back().empty()) {
        std::vector<id> dying;
        dying.swap(pools.back());
        for (id object : dying) [object release];
    }
    pools.pop_back();
    [self release];
}
@end

namespace standin {

void autoreleased(id object) {
    if (pools.empty()) return violation("autoreleased without a pool: the object leaks");
    pools.back().push_back(object);
}

NSError* make_error(const char* domain, long code, const std::string& text) {
    return [[[NSError alloc] initWithDomain:domain code:code text:text.c_str()] autorelease];
}

NSArray* make_array(id* items, unsigned long count) {
    return [[NSArray alloc] initWithObjects:items count:count];
}

}  // namespace standin
