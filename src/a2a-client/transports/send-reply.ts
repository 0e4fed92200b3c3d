import type { Message, Task } from '../../protocol/a2a/model.js';

/** What a message was answered with: exactly one member. */
export type SendReply = { task: Task } | { message: Message };
