import type { Message, Task } from '../../protocol/a2a/model.js';

/** The answer to a message: exactly one member. */
export type SendReply = { task: Task } | { message: Message };
