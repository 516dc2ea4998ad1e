// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
//
// Test-only: the few names of Foundation that metal_backend.mm uses, declared as Apple's documentation has them.
#pragma once
#include <objc/objc.h>
#include <stddef.h>

typedef unsigned long NSUInteger;
typedef long NSInteger;
@class NSString, NSError, NSArray;

@protocol NSObject
- (id)retain;
- (void)release;
- (id)autorelease;
- (NSUInteger)retainCount;
@end

__attribute__((objc_root_class))
@interface NSObject <NSObject> {
    Class isa;
    int references_;
}
+ (id)alloc;
- (id)init;
- (void)dealloc;
@end

@interface NSString : NSObject {
    char* utf8_;
}
+ (NSString*)stringWithUTF8String:(const char*)utf8;
- (const char*)UTF8String;
@end

@interface NSError : NSObject {
    NSString* domain_;
    NSInteger code_;
    NSString* text_;
}
@property(readonly) NSString* domain;
@property(readonly) NSInteger code;
@property(readonly) NSString* localizedDescription;
@end

@interface NSArray : NSObject {
    id* items_;
    NSUInteger count_;
}
@property(readonly) NSUInteger count;
- (id)objectAtIndex:(NSUInteger)index;
@end

@interface NSAutoreleasePool : NSObject
- (void)drain;
@end
