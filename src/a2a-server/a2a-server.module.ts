import { Module } from '@nestjs/common';

/** Room 11: the A2A doors. Its doors are not built yet and answer 404. */
@Module({})
export class A2AServerModule {}
